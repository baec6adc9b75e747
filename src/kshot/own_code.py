"""Code that users bring, loaded as `module:NAME`: methods and metrics of their own."""

import os
import sys
from importlib import import_module
from typing import Any

from kshot.errors import KshotError, one_line


def load_named(kind: str, path: str) -> Any:
    """The object of that name, from an installed package or from a module of the current folder."""
    module_name, _, name = path.partition(":")
    here = os.getcwd()
    if not module_name.startswith("kshot.") and here not in sys.path:
        # As `python -m` would, but last: a file of that folder must not take the place of a library.
        sys.path.append(here)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise KshotError(
            f"cannot import '{module_name}' of {kind} '{path}': {error}. "
            "Install the package or run from the folder that holds the module."
        ) from error
    except Exception as error:
        raise KshotError(
            f"cannot import '{module_name}' of {kind} '{path}': {one_line(error)}. "
            f"Repair it; `python -c 'import {module_name}'` shows where it stops."
        ) from error
    found = getattr(module, name, None)
    if found is None:
        raise KshotError(f"module '{module_name}' has no {'class' if kind == 'method' else kind} '{name}'.")
    return found
