"""Contrastive encoders of open_clip: by pretrained name from the hub, or from a local checkpoint offline."""

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures, weights_fingerprint
from kshot.encode.torchvision_fix import import_torchvision
from kshot.errors import KshotError, need
from kshot.types import Array

PROMPT_BATCH = 256


@cache
def _library() -> Any:
    import_torchvision()
    return need("open_clip", "encode")


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
            raise KshotError(
                f"{model} needs weights: --backbone {model}/TAG (known: {tags}) or --weights FILE."
            )
        self.model = _create(library, model, tag).eval()
        self.tokenizer = library.get_tokenizer(model)
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
            found = self.model.encode_image(torch.from_numpy(batch).to(self.device))
        return _unit(found.float().cpu().numpy())[0]

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        import torch

        rows = []
        with torch.inference_mode():
            for start in range(0, len(prompts), PROMPT_BATCH):
                tokens = self.tokenizer(list(prompts[start : start + PROMPT_BATCH])).to(self.device)
                rows.append(self.model.encode_text(tokens).float().cpu().numpy())
        return PromptFeatures(*_unit(np.concatenate(rows)))

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.architecture,
            "library": "open_clip",
            "activation": self.activation,
            "weights_sha256": self.weights_sha256,
            "preprocessing": self.preprocessing.facts(),
        }


def _create(library: Any, model: str, tag: str | None) -> Any:
    """The model in float32. open_clip only warns when weights were trained with another activation; we stop."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message="QuickGELU mismatch")
            return library.create_model(model, pretrained=tag, require_pretrained=True, precision="fp32")
    except UserWarning as mismatch:
        raise KshotError(
            f"{model} has another activation than the weights '{tag}' were trained with ({mismatch}). "
            f"Use {model.removesuffix('-quickgelu')}{'' if model.endswith('-quickgelu') else '-quickgelu'}."
        ) from None
    except (
        Exception
    ) as error:  # a checkpoint can be broken in as many ways as there are libraries that read it
        reason = str(error).splitlines()[0][:300]
        raise KshotError(
            f"cannot load {model} with weights '{tag}': {reason}. Offline, give a checkpoint with --weights."
        ) from None


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
