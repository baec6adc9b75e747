"""Optional packages, asked for at the moment they are needed."""

import importlib
from types import ModuleType

from kshot.errors import KshotError


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which command installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and not module.startswith(error.name):
            raise
        raise KshotError(f"{module} is not installed. Type: pip install 'kshot[{extra}]'") from None
