"""kshot: few-shot heads for CLIP-like models; what tuning them is worth, and which one to use."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

# Nothing is imported before it is used: a command or a worker needs a part of it.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_WHERE = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, re.MULTILINE)}
__all__ = [*_WHERE, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'kshot' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
