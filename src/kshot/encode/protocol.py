"""What every encoder offers, and what all of them need from torch."""

import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from kshot.encode.preprocess import Preprocessing
from kshot.errors import KshotError, unknown
from kshot.types import Array

DEVICES = ("auto", "cpu", "cuda")
_declared = []


class PromptFeatures(NamedTuple):
    """Unit rows and the norms they had before normalisation: features (P, d) and norms (P,)."""

    unit: Array
    norms: Array


@runtime_checkable
class Encoder(Protocol):
    """Pictures and prompts to unit features, with the facts that a manifest records."""

    @property
    def dim(self) -> int: ...
    @property
    def preprocessing(self) -> Preprocessing: ...
    @property
    def logit_scale(self) -> float | None: ...
    @property
    def logit_bias(self) -> float | None: ...
    @property
    def text(self) -> bool: ...

    def encode_images(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]: ...

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures: ...

    def facts(self) -> dict[str, Any]:
        """Library, architecture, activation and weights fingerprint: what must match for features to mix."""
        ...


def unit_and_norms(rows: Float[Array, "N d"]) -> PromptFeatures:
    norms = np.linalg.norm(rows, axis=1)
    return PromptFeatures(rows / norms[:, None], norms)


class TorchEncoder:
    """Base of the encoders that run a torch network; `tower` returns features before normalisation, as tensors."""

    library = ""
    tower: Callable[[Any], Any]

    def __init__(self, model: Any, preprocessing: Preprocessing, device: str, name: str, activation: str):
        self.preprocessing, self.device, self.name, self.activation = preprocessing, device, name, activation
        self.weights_sha256 = weights_fingerprint(model.state_dict())
        self.model = model.eval().to(device)

    def encode_images(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        return unit_and_norms(self.pooled(batch)).unit

    def pooled(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        """Features before normalisation."""
        import torch

        with torch.inference_mode():
            return self.tower(torch.from_numpy(batch).to(self.device)).float().cpu().numpy()

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "library": self.library,
            "activation": self.activation,
            "weights_sha256": self.weights_sha256,
            "preprocessing": self.preprocessing.facts(),
        }


def weights_fingerprint(state: Mapping[str, Any]) -> str:
    """sha256 over names, shapes and bytes of a state dict, so that a file's packaging does not matter."""
    digest = hashlib.sha256()
    for name in sorted(state):
        values = state[name].detach().cpu().contiguous().float().numpy()
        digest.update(f"{name}{values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def pick_device(wanted: str) -> str:
    """Return a GPU for `auto` where there is one; raise if a tensor cannot be put on the device."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted).cpu()
    except (RuntimeError, AssertionError):
        advice = "Give --device cpu, or leave --device out for auto."
        if wanted.partition(":")[0] not in DEVICES:
            raise KshotError(unknown("device", wanted, DEVICES, advice)) from None
        raise KshotError(f"torch cannot use the device '{wanted}' on this machine. {advice}") from None
    return wanted


def import_torchvision() -> None:
    """Make `import torchvision` work for the libraries that import it.

    Its wheel is built against a CUDA torch. Beside a CPU torch its extension does not load, and the import fails on
    two box operators that nothing here uses. Declaring them without an implementation lets the import pass.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        import torch

        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _declared.append(library)  # torch forgets the declaration with the object
        importlib.import_module("torchvision")
