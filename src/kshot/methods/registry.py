"""Methods by name: built in, of installed packages (entry points), `package.module:Class`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from inspect import getattr_static
from types import ModuleType
from typing import Any

from kshot.errors import InputError, KshotError, one_line, unknown
from kshot.methods.base import Classifier
from kshot.methods.code import code_hash, value_hash
from kshot.methods.parameters import check_parameters
from kshot.own_code import load_named
from kshot.types import MethodInfo

ENTRY_POINT_GROUP = "kshot.methods"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a method lives and the parameters that make it this one."""

    path: str
    params: dict[str, Any] = field(default_factory=dict)


BUILTIN: dict[str, Entry] = {
    "zero_shot": Entry("kshot.methods.zero_shot:ZeroShot"),
    "ncm": Entry("kshot.methods.ncm:NCM"),
    "js_blend": Entry("kshot.methods.js_blend:JSBlend"),
    "centred_js_blend": Entry("kshot.methods.js_blend:CentredJSBlend"),
    "loo_blend": Entry("kshot.methods.loo_blend:LOOBlend"),
    "loo_blend_kcorr": Entry("kshot.methods.loo_blend:LOOBlend", {"k_correction": True}),
    "gda_alpha1": Entry("kshot.methods.gda:GDA"),
    "gda_alpha_loo": Entry("kshot.methods.gda:GDA", {"alpha": "loo"}),
    "hoso": Entry("kshot.methods.hoso:HOSO"),
    "clip_adapter": Entry("kshot.methods.clip_adapter:CLIPAdapter"),
    "tip_adapter": Entry("kshot.methods.tip_adapter:TipAdapter", {"tune": "fixed"}),
    "tip_adapter_loo": Entry("kshot.methods.tip_adapter:TipAdapter", {"tune": "loo"}),
    "clap": Entry("kshot.methods.clap:CLAP"),
    "zs_lp": Entry("kshot.methods.clap:CLAP", {"penalty": False}),
    "lpp": Entry("kshot.methods.lpp:LPP"),
    "ss_text": Entry("kshot.methods.ss_text:SSText"),
    "ss_text_plus": Entry("kshot.methods.ss_text:SSText", {"plus": True}),
    "taskres": Entry("kshot.methods.taskres:TaskRes"),
    "rla": Entry("kshot.methods.rla:RLA"),
    "cross_modal_lp": Entry("kshot.methods.cross_modal_lp:CrossModalLP"),
    "cross_modal_lp_wiseft": Entry("kshot.methods.cross_modal_lp:CrossModalLP", {"text_share": 0.5}),
    "tip_adapter_f": Entry("kshot.methods.tip_adapter_f:TipAdapterF"),
    "ape": Entry("kshot.methods.ape:APE"),
    "proker": Entry("kshot.methods.proker:ProKeR"),
    "fold_gda": Entry("kshot.methods.fold_gda:FoldGDA"),
    "fast_probe": Entry("kshot.methods.fast_probe:FastProbe"),
    "gauss_probe": Entry("kshot.methods.gauss_probe:GaussProbe"),
    "logistic_probe": Entry("kshot.methods.logistic_probe:LogisticProbe"),
    "transclip": Entry("kshot.methods.transclip:TransCLIP"),
    "gauss_together": Entry("kshot.methods.gauss_together:GaussTogether"),
    "transclip_aligned": Entry("kshot.methods.transclip:TransCLIP", {"aligned": True}),
    "gda_alpha_val": Entry("kshot.methods.gda:GDA", {"alpha": "val"}),
    "tip_adapter_f_test": Entry("kshot.methods.tip_adapter_f:TipAdapterF", {"tune": "test"}),
    "ape_val": Entry("kshot.methods.ape:APE", {"tune": "val"}),
    "proker_val": Entry("kshot.methods.proker:ProKeR", {"tune": "val"}),
    "oracle_lambda": Entry("kshot.methods.oracles:OracleBlend"),
    "tip_adapter_test": Entry("kshot.methods.tip_adapter:TipAdapter", {"tune": "test"}),
    "logistic_probe_test": Entry("kshot.methods.logistic_probe:LogisticProbe", {"tune": "test"}),
    "mse_oracle": Entry("kshot.methods.oracles:MSEOracleBlend"),
}


def names() -> list[str]:
    """Every method that has a plain name."""
    return [*BUILTIN, *(name for name in _installed() if name not in BUILTIN)]


KINDS = {
    "free": lambda info: not (info.reference_point or info.transductive),
    "transductive": lambda info: info.transductive and not info.reference_point,
    "reference": lambda info: info.reference_point,
    "all": lambda info: True,
}


def heads(kind: str = "free") -> list[str]:
    """Names of all heads of a kind: "free" ones look at text and shots, "transductive" ones at unlabelled queries too,
    "reference" points at further labels; "all".

    Examples
    --------
    >>> import kshot
    >>> kshot.heads("free")[:4]
    ['zero_shot', 'ncm', 'js_blend', 'centred_js_blend']
    >>> "gda_alpha_val" in kshot.heads("reference")
    True
    """
    if kind not in KINDS:
        raise InputError(unknown("kind of head", kind, KINDS, "Give one of them."))
    return [name for name in names() if KINDS[kind](info(name))]


def create(name: str, **params: Any) -> Classifier:
    """Make an unfitted method; `params` override the defaults of that name."""
    entry = _entry(name)
    method = builtin_class(entry.path)() if name in BUILTIN else _made(entry.path)
    method.set_params(**{**entry.params, **params})
    check_parameters(method)
    return method


def info(name: str, params: Mapping[str, Any] | None = None) -> MethodInfo:
    """The `info` of a method by its name, read off the class of a built-in one where no parameter may change it."""
    if name in BUILTIN and not params:
        described = getattr_static(builtin_class(BUILTIN[name].path), "info")
        if isinstance(described, MethodInfo):
            return described
    return create(name, **(params or {})).info


def _entry(name: str) -> Entry:
    path = path_of(name)
    if ":" not in path:
        hint = "List them with `kshot ls methods`, or give your own as package.module:Class."
        raise KshotError(unknown("method", name, names(), hint))
    return BUILTIN.get(name, Entry(path))


def create_afresh(name: str, **params: Any) -> Classifier:
    """`create`, with the module of a user's own method imported again, so that no state passes between cells."""
    if name in BUILTIN:
        return create(name, **params)
    package = _installed().get(name, name).partition(":")[0].partition(".")[0]
    kept = {m: sys.modules[m] for m in list(sys.modules) if m == package or m.startswith(f"{package}.")}
    if package in ("kshot", "__main__") or not all(_is_python(module) for module in kept.values()):
        return create(name, **params)
    for module in kept:
        del sys.modules[module]
    try:
        return create(name, **params)
    except KshotError:
        # Some modules can be imported once only.
        sys.modules.update(kept)
        return create(name, **params)


def path_of(name: str) -> str:
    """`package.module:Class` of a method by its name; a name that is not known is returned as it is."""
    return BUILTIN[name].path if name in BUILTIN else _installed().get(name, name)


def name_of(method: Classifier) -> str:
    """A name from which `create` makes such a method, given its parameters."""
    if method.info.key in names():
        return method.info.key
    path = f"{type(method).__module__}:{type(method).__qualname__}"
    known = {entry.path: name for name, entry in reversed(BUILTIN.items())}
    return known.get(path, path)


def builtin_class(path: str) -> type[Classifier]:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _is_python(module: ModuleType) -> bool:
    """Compiled modules cannot be imported a second time."""
    return (getattr(module, "__file__", None) or ".py").endswith(".py")


def _made(path: str) -> Classifier:
    cls = load_named("method", path)
    if not (isinstance(cls, type) and issubclass(cls, Classifier)):
        raise KshotError(f"'{path}' is not a kshot.methods.base.Classifier; see docs/add-a-method.md.")
    try:
        return cls()
    except Exception as error:
        raise KshotError(
            f"cannot make method '{path}': {one_line(error)}. Give every parameter of its __init__ a default; "
            "see docs/add-a-method.md."
        ) from error


def _installed() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


def code_of(use: str, params: Mapping[str, Any] | None = None) -> str:
    """A hash of the code of a method that is not kshot's, or its version if that is above 1; with those of the methods
    that its parameters name. Empty for methods of kshot, which have a version."""
    return code_of_head(create_afresh(use, **(params or {})))


def code_of_head(head: Classifier) -> str:
    """`code_of` for an object."""
    params = [value for value in head.get_params().values() if isinstance(value, str)]
    named = [code_of(value) for value in params if value in BUILTIN or ":" in path_of(value)]
    return " ".join(code for code in [_own_code(head), *named] if code)


def session_code(head: Classifier) -> str:
    """`code_of` for an object that no process can make again, with a hash of its parameters."""
    return f"{code_of_head(head)} {value_hash(head.get_params())}"


def _own_code(head: Classifier) -> str:
    cls, version = type(head), head.info.version
    if cls.__module__.partition(".")[0] == "kshot":
        return ""
    return code_hash(cls) if version == 1 else f"version {version}"
