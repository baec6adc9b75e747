"""What every encoder offers, whatever library stands behind it."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float

from kshot.encode.preprocess import Preprocessing
from kshot.errors import KshotError, unknown
from kshot.types import Array

DEVICES = ("auto", "cpu", "cuda")


class PromptFeatures(NamedTuple):
    """Unit rows and the norms they had before normalisation: features (P, d) and norms (P,)."""

    unit: Array
    norms: Array


@runtime_checkable
class Encoder(Protocol):
    """Pictures and prompts to unit features, with everything that a manifest must say about how."""

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


def weights_fingerprint(state: Mapping[str, Any]) -> str:
    """sha256 over names, shapes and bytes of a state dict, so that a file's packaging does not matter."""
    digest = hashlib.sha256()
    for name in sorted(state):
        values = state[name].detach().cpu().contiguous().float().numpy()
        digest.update(f"{name}{values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def pick_device(wanted: str) -> str:
    """`auto` takes a GPU where there is one; any other device must hold a number before work begins on it."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.device(wanted)
    except RuntimeError:
        raise KshotError(unknown("device", wanted, DEVICES, "Leave --device out for auto.")) from None
    try:
        torch.zeros(1, device=wanted).cpu()
    except (RuntimeError, AssertionError):
        raise KshotError(
            f"torch cannot use the device '{wanted}' on this machine. Give --device cpu, or leave it out for auto."
        ) from None
    return wanted
