"""What every encoder offers, and what all of them need from torch."""

import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from kshot.encode.preprocess import AsGiven
from kshot.errors import InputError, KshotError, unknown
from kshot.methods.parameters import check_logit_scale
from kshot.solvers.rows import as_numpy
from kshot.types import Array

DEVICES = ("auto", "cpu", "cuda", "mps")
# Rows of half precision that were normalised are off by less.
UNIT_TOLERANCE = 2e-3
_declared = []
_here: dict[str, str] = {}


class PromptFeatures(NamedTuple):
    """Unit rows and the norms they had before normalisation: features (P, d) and norms (P,)."""

    unit: Array
    norms: Array


class Encoder:
    """Pictures and prompts to unit features: two functions, or a model through `from_transformers` or `from_open_clip`.

    Parameters
    ----------
    images : function
        A list of n RGB pictures of Pillow → (n, d), an array or a tensor.
    text : function
        A list of n sentences → (n, d); without it class names cannot help. Rows as the model gives them, before they
        are normalised: their norm is the `anchor_scale` of heads, which assume 10 where all rows have length 1.
    name : text
        Name of the encoder. kshot cannot look into functions, so other weights or another preprocessing need
        another name; features of such an encoder are not cached.
    logit_scale, logit_bias : numbers
        Logits are scale·cosine + bias, as the model was trained.
    """

    text = True
    library = "functions"
    # What `--backbone` takes to load it again; that of functions is their name.
    backbone = ""
    preprocessing: Any = AsGiven()
    # Name, checkpoint and device of an encoder that another process can load by them.
    loaded: tuple[str, Path | None, str] | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return super().__reduce_ex__(protocol) if self.loaded is None else (load_again, self.loaded)

    def __init__(
        self,
        images: Callable[[list[Any]], Any],
        text: Callable[[list[str]], Any] | None = None,
        *,
        name: str,
        logit_scale: float | None = None,
        logit_bias: float | None = None,
    ):
        self._images, self._prompts, self.text = images, text, text is not None
        self.name = self.backbone = name
        if logit_scale is not None:
            check_logit_scale(logit_scale, name)
        self.logit_scale, self.logit_bias = logit_scale, logit_bias

    @staticmethod
    def from_transformers(model: Any, processor: Any) -> "Encoder":
        """An encoder of a transformers model with `get_image_features` and `get_text_features`, and its processor.

        The model stays on its device and in its precision, and is set to evaluation.
        """
        from kshot.encode.hf import TransformersEncoder

        return TransformersEncoder(model, processor)

    @staticmethod
    def from_open_clip(model: Any, tokenizer: Any, name: str) -> "Encoder":
        """An encoder of a model that open_clip made, with its tokenizer; the preprocessing is the model's own.

        `name` is MODEL/WEIGHTS as `--backbone` takes it, so that a head knows which encoder to load again.
        """
        from kshot.encode.encoders import open_clip_names
        from kshot.encode.openclip import OpenClipEncoder

        encoder = OpenClipEncoder(open_clip_names(name)[0], model, tokenizer)
        encoder.backbone = name
        return encoder

    @cached_property
    def dim(self) -> int:
        """Dimension of the features."""
        return int(self.encode_prompts(["a"]).unit.shape[1])

    def encode_images(self, inputs: Sequence[Any] | Array) -> Float[Array, "B d"]:
        """Unit features of pictures that went through `preprocessing`."""
        return unit_and_norms(_rows(self._images(list(inputs)), len(inputs), self.name)).unit

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        """Unit features of sentences, and their norms before."""
        if self._prompts is None:
            raise KshotError(f"{self.name} has no text function; leave the tiers out, or give text=.")
        return unit_and_norms(_rows(self._prompts(list(prompts)), len(prompts), self.name))

    def facts(self) -> dict[str, Any]:
        """Library, architecture, activation and weights fingerprint: what must match for features to mix."""
        return {"name": self.name, "library": self.library}


def _rows(found: Any, count: int, name: str) -> Float[Array, "n d"]:
    """What a function returned, as float32 rows; tensors may be on any device."""
    rows = np.asarray(as_numpy(found, f"the answer of the encoder {name}"), np.float32)
    if rows.ndim != 2 or len(rows) != count:
        raise InputError(f"the encoder {name} returned {rows.shape} for {count} inputs; it must be ({count}, d).")
    return rows


def unit_and_norms(rows: Float[Array, "N d"]) -> PromptFeatures:
    norms = np.linalg.norm(rows, axis=1)
    return PromptFeatures(rows / norms[:, None], norms)


def known_norms(norms: Float[Array, " P"]) -> Float[Array, " P"] | None:
    """None where all norms are 1: such an encoder returns unit rows, and what their norms were is not known."""
    return None if np.allclose(norms, 1, rtol=0, atol=UNIT_TOLERANCE) else norms


class TorchEncoder(Encoder):
    """Base of the encoders that run a torch network; `tower` returns features before normalisation, as tensors."""

    tower: Callable[[Any], Any]

    def __init__(self, model: Any, preprocessing: Any, device: Any, name: str, activation: str):
        self.preprocessing, self.device, self.name, self.activation = preprocessing, device, name, activation
        self.weights_sha256 = weights_fingerprint(model.state_dict())
        self.model = model.eval().to(device)

    def encode_images(self, inputs: Sequence[Any] | Array) -> Float[Array, "B d"]:
        return unit_and_norms(self.pooled(np.stack(list(inputs)))).unit

    def pooled(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        """Features before normalisation."""
        return self.run(self.tower, batch=batch)

    def run(self, tower: Callable[..., Any], **arrays: Array) -> Float[Array, "B d"]:
        """Call a tower of the network with arrays, on its device and the floating ones in its precision."""
        import torch

        kind = next(self.model.parameters()).dtype
        given = {name: torch.from_numpy(value).to(self.device) for name, value in arrays.items()}
        with torch.inference_mode():
            found = tower(**{name: v.to(kind) if v.is_floating_point() else v for name, v in given.items()})
        # Since transformers 5 some are an output with the features in it.
        return getattr(found, "pooler_output", found).float().cpu().numpy()

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "library": self.library,
            "activation": self.activation,
            "weights_sha256": self.weights_sha256,
            "preprocessing": self.preprocessing.facts(),
        }


def model_number(model: Any, name: str) -> float | None:
    """A parameter of a model that is a single number; None where the model has none of that name."""
    found = getattr(model, name, None)
    return None if found is None else float(found.detach())


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
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted).cpu()
    except (RuntimeError, AssertionError):
        advice = "Give --device cpu, or leave --device out for auto."
        if wanted.partition(":")[0] not in DEVICES:
            raise KshotError(unknown("device", wanted, DEVICES, advice)) from None
        raise KshotError(f"torch cannot use the device '{wanted}' on this machine. {advice}") from None
    return wanted


def several_devices(wanted: str, workers: int) -> tuple[str, ...]:
    """The devices that workers take in turn: those that are named, or all GPUs for `auto`."""
    import torch

    if wanted == "auto" and workers > 1 and torch.cuda.device_count() > 1:
        return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return tuple(pick_device(name.strip()) for name in wanted.split(","))


def use_device(name: str) -> None:
    """Encoders that come to this process from another one are put on this device."""
    _here["device"] = name


@lru_cache(maxsize=8)
def load_again(name: str, weights: Path | None, device: str) -> "Encoder":
    """The encoder of another process, loaded once in this one."""
    from kshot.encode.encoders import load_encoder

    return load_encoder(name, weights, _here.get("device", device))


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
