"""`kshot doctor`: what is installed and what works here, in one screen to paste into an issue."""

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

import typer

from kshot import __version__
from kshot.errors import KshotError
from kshot.pictures.encoded import cache_folder

EXTRAS = ("lite", "encode", "hf", "serve", "frames", "dask")
SHOWN = ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "torchvision", "transformers", "open_clip_torch", "timm")
SHOWN += ("pillow", "onnxruntime")
MOST_MODELS = 4


def doctor() -> None:
    """Print versions, extras, device, cores, encoders that work here, and cache folders."""
    lines = [
        ("kshot", f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}"),
        ("packages", ", ".join(f"{name} {found}" for name in SHOWN if (found := _version(name)))),
        ("extras", "; ".join(_extra(name) for name in EXTRAS)),
        ("cores", f"{os.cpu_count()}; BLAS {_blas()}"),
        *_torch_lines(),
        ("folders", f"picture features {cache_folder()}; features {os.environ.get('KSHOT_FEATURES', 'features')}"),
        ("python", sys.executable),
    ]
    for name, words in lines:
        typer.echo(f"{name:9} {words}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extra(name: str) -> str:
    """Whether the packages of an extra are installed; else the first three that are missing."""
    lines = [line for line in requires("kshot") or () if re.search(f"extra == ['\"]{name}['\"]", line)]
    wanted = [re.split("[^A-Za-z0-9._-]", line)[0] for line in lines]
    lacking = [package for package in wanted if not _version(package)]
    if not wanted:
        return f"{name} unknown to this installation"
    return f"{name} yes" if not lacking else f"{name} lacks {', '.join(lacking[:3])}{' …' if len(lacking) > 3 else ''}"


def _blas() -> str:
    import numpy as np  # loads the BLAS that is asked for
    from threadpoolctl import threadpool_info

    found = {f"{one['internal_api']} {one['version']}, {one['num_threads']} threads" for one in threadpool_info()}
    return "; ".join(sorted(found)) or f"of numpy {np.__version__}, unknown to threadpoolctl"


def _torch_lines() -> list[tuple[str, str]]:
    if find_spec("torch") is None:
        return [("encoders", "none: torch is not installed. See docs/install.md")]
    import torch

    from kshot.encode.protocol import pick_device

    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    build = "CUDA build" if torch.version.cuda else "CPU build"
    there = ", ".join(f"{name} {'yes' if found else 'no'}" for name, found in has.items())
    return [("device", f"{pick_device('auto')} ({build}; {there})"), *_encoder_lines()]


def _encoder_lines() -> list[tuple[str, str]]:
    from kshot.encode.encoders import load_encoder

    try:
        load_encoder("lite0")
        small = "works"
    except KshotError as error:
        small = str(error)
    libraries = {"MODEL/WEIGHTS": "open_clip", "hf:ORG/NAME": "transformers"}
    works = [f"{form} {'yes' if find_spec(name) else f'lacks {name}'}" for form, name in libraries.items()]
    lines = [("encoders", f"lite0 {small}; {'; '.join(works)}; DINO {'yes' if find_spec('timm') else 'lacks timm'}")]
    if find_spec("huggingface_hub"):
        from huggingface_hub import constants

        from kshot.encode.hub import offline_reason

        lines.append(("hub", f"{offline_reason() or 'reachable'}; {_cached(Path(constants.HF_HUB_CACHE))}"))
    return lines


def _cached(folder: Path) -> str:
    """The models that the hub's cache holds."""
    names = sorted(path.name.removeprefix("models--").replace("--", "/") for path in folder.glob("models--*"))
    more = f" and {len(names) - MOST_MODELS} more" if len(names) > MOST_MODELS else ""
    return f"cache {folder} with {', '.join(names[:MOST_MODELS]) + more if names else 'no models'}"
