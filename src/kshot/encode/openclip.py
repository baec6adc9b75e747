"""Contrastive encoders of open_clip: by pretrained name from the hub, or from a local checkpoint offline."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.hub import spare_the_wait
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures, weights_fingerprint
from kshot.encode.torchvision_fix import import_torchvision
from kshot.errors import KshotError, missing_extra, need
from kshot.types import Array

NEEDS_HUB = "Once with a connection they stay in the cache; offline,"


@cache
def _library() -> Any:
    import_torchvision()
    return need("open_clip", "encode")


@contextmanager
def _silence() -> Iterator[None]:
    """The libraries log and print what the one error message says too."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def known_models() -> list[str]:
    return _library().list_models()


class OpenClipEncoder:
    """`weights` is a pretrained tag, a checkpoint file, or a folder with open_clip_config.json beside its weights."""

    text = True

    def __init__(self, model: str, weights: str | Path, device: str = "cpu"):
        library = _library()
        self.architecture = model
        self.device = device
        if isinstance(weights, Path) and weights.is_dir():
            model, tag = f"local-dir:{weights}", None
        else:
            tag = str(weights) or None
        if tag is None and not model.startswith("local-dir:"):
            tags = ", ".join(library.list_pretrained_tags_by_model(model)) or "none"
            raise KshotError(f"{model} needs weights: --backbone {model}/TAG (known: {tags}) or --weights FILE.")
        # The tokenizer first: what it lacks is told before gigabytes of weights are fetched.
        self.tokenizer = _tokenizer(library, model)
        self.model = _create(library, model, tag).eval()
        self.preprocessing = _preprocessing(library.get_model_preprocess_cfg(self.model))
        self.weights_sha256 = weights_fingerprint(self.model.state_dict())
        self.logit_scale = float(self.model.logit_scale.detach().exp())
        bias = self.model.logit_bias
        self.logit_bias = None if bias is None else float(bias.detach())
        self.activation = _activation(self.model)
        self.model.to(device)
        self.dim = int(self.encode_prompts(["a"]).unit.shape[1])

    def encode_images(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        import torch

        with torch.inference_mode():
            features = self.tower(torch.from_numpy(batch).to(self.device))
        return _unit(features.float().cpu().numpy())[0]

    def tower(self, batch: Any) -> Any:
        """Scaled pictures to features before normalisation, as tensors of torch."""
        return self.model.encode_image(batch)

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        import torch

        with torch.inference_mode():
            found = self.model.encode_text(self.tokenizer(list(prompts)).to(self.device))
        return PromptFeatures(*_unit(found.float().cpu().numpy()))

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.architecture,
            "library": "open_clip",
            "activation": self.activation,
            "weights_sha256": self.weights_sha256,
            "preprocessing": self.preprocessing.facts(),
        }


def _tokenizer(library: Any, model: str) -> Any:
    """open_clip's own, or for SigLIP one of transformers, from the folder of the weights or from the hub."""
    local = model.startswith("local-dir:")
    offline = None if local else spare_the_wait()
    try:
        with _silence():
            return library.get_tokenizer(model)
    except ModuleNotFoundError as error:
        raise missing_extra(str(error.name).partition(".")[0], "encode") from None
    except Exception as error:  # whatever transformers raises over files that are absent or damaged
        put = "Put tokenizer.json and tokenizer_config.json beside the weights."
        raise KshotError(
            f"cannot load the tokenizer of {model}: {_told(error, offline)}. "
            + (put if local else f"{NEEDS_HUB} give a folder of weights and tokenizer with --weights.")
        ) from None


def _create(library: Any, model: str, tag: str | None) -> Any:
    """The model in float32. open_clip only warns when weights were trained with another activation; we stop."""
    offline = None if tag is None or Path(tag).exists() else spare_the_wait()
    try:
        with warnings.catch_warnings(), _silence():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message="QuickGELU mismatch")
            return library.create_model(model, pretrained=tag, require_pretrained=True, precision="fp32")
    except UserWarning as mismatch:
        raise KshotError(
            f"{model} has another activation than the weights '{tag}' were trained with ({mismatch}). "
            f"Use {model.removesuffix('-quickgelu')}{'' if model.endswith('-quickgelu') else '-quickgelu'}."
        ) from None
    except Exception as error:  # a checkpoint can be broken in as many ways as there are libraries that read it
        raise KshotError(
            f"cannot load {model} with weights '{tag}': {_told(error, offline)}. {NEEDS_HUB} give a checkpoint with "
            "--weights."
        ) from None


def _told(error: Exception, offline: str | None) -> str:
    if offline is not None:
        return f"the hub cannot be reached ({offline}), and they are not in its cache"
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def _preprocessing(config: dict[str, Any]) -> Preprocessing:
    size = config["size"]
    pixels = size if isinstance(size, int) else size[0]
    if config["mode"] != "RGB" or config["resize_mode"] not in ("shortest", "squash"):
        raise KshotError(f"preprocessing {config} is not one that kshot reproduces.")
    return Preprocessing(
        pixels, tuple(config["mean"]), tuple(config["std"]), config["resize_mode"], config["interpolation"]
    )


def _activation(model: Any) -> str:
    """Class names of the activations that occur, so that GELU and QuickGELU leave different manifests."""
    names = {type(module).__name__ for module in model.modules()}
    return "+".join(sorted(name for name in names if "GELU" in name or "ReLU" in name or name == "SiLU"))


def _unit(rows: Float[Array, "N d"]) -> tuple[Array, Array]:
    norms = np.linalg.norm(rows, axis=1)
    return rows / norms[:, None], norms
