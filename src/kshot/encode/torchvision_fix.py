"""Import torchvision beside a torch that its compiled operators were not built for.

Torchvision's wheel is built against a CUDA torch. Beside a CPU torch its extension does not load, and then the
import fails on two box operators that nothing here uses. Declaring them without an implementation lets the
import pass; where the extension loads, nothing is declared.
"""

import importlib
import sys

_UNUSED_OPERATORS = ("nms", "qnms")
_declared = []


def import_torchvision() -> None:
    """Make `import torchvision` safe for the libraries that do it by themselves."""
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        _declare_operators()
        importlib.import_module("torchvision")


def _declare_operators() -> None:
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in _UNUSED_OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(library)  # torch forgets the declaration with the object
