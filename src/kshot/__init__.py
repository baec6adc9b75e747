"""kshot: few-shot heads for CLIP-like models; what tuning them is worth, and which one to use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_WHERE = {
    "ZeroShot": "kshot.methods.zero_shot",
    "NCM": "kshot.methods.ncm",
    "JSBlend": "kshot.methods.js_blend",
    "CentredJSBlend": "kshot.methods.js_blend",
    "LOOBlend": "kshot.methods.loo_blend",
    "OracleBlend": "kshot.methods.oracles",
    "MSEOracleBlend": "kshot.methods.oracles",
    "GDA": "kshot.methods.gda",
    "CLAP": "kshot.methods.clap",
    "LPP": "kshot.methods.lpp",
    "CLIPAdapter": "kshot.methods.clip_adapter",
    "HOSO": "kshot.methods.hoso",
    "TipAdapter": "kshot.methods.tip_adapter",
    "LogisticProbe": "kshot.methods.logistic_probe",
    "FoldGDA": "kshot.methods.fold_gda",
    "FastProbe": "kshot.methods.fast_probe",
    "GaussProbe": "kshot.methods.gauss_probe",
    "SSText": "kshot.methods.ss_text",
    "ProKeR": "kshot.methods.proker",
    "APE": "kshot.methods.ape",
    "TipAdapterF": "kshot.methods.tip_adapter_f",
    "TaskRes": "kshot.methods.taskres",
    "RLA": "kshot.methods.rla",
    "CrossModalLP": "kshot.methods.cross_modal_lp",
    "TransCLIP": "kshot.methods.transclip",
    "heads": "kshot.methods.registry",
    "load_head": "kshot.methods.headfile",
    "save_head": "kshot.methods.headfile",
    "Encoder": "kshot.encode.protocol",
    "encode_dataset": "kshot.encode.encoding",
    "PictureHead": "kshot.pictures.head",
    "fit_pictures": "kshot.pictures.fit",
    "Features": "kshot.data.features",
    "EncodePictures": "kshot.pictures.transform",
    "load_features": "kshot.data.features",
    "load_study": "kshot.bench.study",
    "load_records": "kshot.results",
    "run": "kshot.runs",
    "compare": "kshot.runs",
    "judge": "kshot.runs",
}
__all__ = [*_WHERE, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from kshot.bench.study import load_study as load_study
    from kshot.data.features import Features as Features
    from kshot.data.features import load_features as load_features
    from kshot.encode.encoding import encode_dataset as encode_dataset
    from kshot.encode.protocol import Encoder as Encoder
    from kshot.methods.ape import APE as APE
    from kshot.methods.clap import CLAP as CLAP
    from kshot.methods.clip_adapter import CLIPAdapter as CLIPAdapter
    from kshot.methods.cross_modal_lp import CrossModalLP as CrossModalLP
    from kshot.methods.fast_probe import FastProbe as FastProbe
    from kshot.methods.fold_gda import FoldGDA as FoldGDA
    from kshot.methods.gauss_probe import GaussProbe as GaussProbe
    from kshot.methods.gda import GDA as GDA
    from kshot.methods.headfile import load_head as load_head
    from kshot.methods.headfile import save_head as save_head
    from kshot.methods.hoso import HOSO as HOSO
    from kshot.methods.js_blend import CentredJSBlend as CentredJSBlend
    from kshot.methods.js_blend import JSBlend as JSBlend
    from kshot.methods.logistic_probe import LogisticProbe as LogisticProbe
    from kshot.methods.loo_blend import LOOBlend as LOOBlend
    from kshot.methods.lpp import LPP as LPP
    from kshot.methods.ncm import NCM as NCM
    from kshot.methods.oracles import MSEOracleBlend as MSEOracleBlend
    from kshot.methods.oracles import OracleBlend as OracleBlend
    from kshot.methods.proker import ProKeR as ProKeR
    from kshot.methods.registry import heads as heads
    from kshot.methods.rla import RLA as RLA
    from kshot.methods.ss_text import SSText as SSText
    from kshot.methods.taskres import TaskRes as TaskRes
    from kshot.methods.tip_adapter import TipAdapter as TipAdapter
    from kshot.methods.tip_adapter_f import TipAdapterF as TipAdapterF
    from kshot.methods.transclip import TransCLIP as TransCLIP
    from kshot.methods.zero_shot import ZeroShot as ZeroShot
    from kshot.pictures.fit import fit_pictures as fit_pictures
    from kshot.pictures.head import PictureHead as PictureHead
    from kshot.pictures.transform import EncodePictures as EncodePictures
    from kshot.results import load_records as load_records
    from kshot.runs import compare as compare
    from kshot.runs import judge as judge
    from kshot.runs import run as run


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'kshot' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
