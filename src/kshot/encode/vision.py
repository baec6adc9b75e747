"""Encoders without a text tower, for the text-free arm: DINOv2 and DINOv3 through timm.

Their checkpoints come from several mirrors, so architecture, parameter count and input geometry are asserted
before a feature is trusted. DINOv2 scales the shorter side to 256 and crops 224; DINOv3 scales straight to
224 × 224.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import Encoder, PromptFeatures, weights_fingerprint
from kshot.encode.torchvision_fix import import_torchvision
from kshot.errors import KshotError, need
from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_ALIKE, PIXELS = 0.95, 256
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True, slots=True)
class VisionModel:
    """What a genuine checkpoint must have."""

    model: str
    tag: str
    patch: int
    prefix_tokens: int
    parameters: int
    preprocessing: Preprocessing


VARIANTS = {
    "DINOv2-B-14": VisionModel(
        "vit_base_patch14_dinov2",
        "lvd142m",
        patch=14,
        prefix_tokens=1,
        parameters=85_527_552,
        preprocessing=Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, resize_to=256),
    ),
    "DINOv3-B-16": VisionModel(
        "vit_base_patch16_dinov3",
        "lvd1689m",
        patch=16,
        prefix_tokens=5,
        parameters=85_641_216,
        preprocessing=Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, "squash", "bilinear"),
    ),
}


class VisionEncoder:
    """The class token after the last layer norm."""

    text = False
    logit_scale = None
    logit_bias = None
    dim = 768

    def __init__(self, name: str, weights: Path | None = None, device: str = "cpu"):
        import_torchvision()
        timm = need("timm", "encode")
        self.variant = VARIANTS[name]
        self.device = device
        overlay = {"file": str(weights)} if weights is not None else None
        try:
            self.model = timm.create_model(
                f"{self.variant.model}.{self.variant.tag}",
                pretrained=True,
                pretrained_cfg_overlay=overlay,
                img_size=self.variant.preprocessing.pixels,
                num_classes=0,
            ).eval()
        except Exception as error:  # a checkpoint can be broken in as many ways as there are readers of it
            reason = str(error).splitlines()[0][:300]
            raise KshotError(f"cannot load {name}: {reason}. Offline, give a checkpoint with --weights.") from None
        check_architecture(self.model, name)
        self.preprocessing = self.variant.preprocessing
        self.weights_sha256 = weights_fingerprint(self.model.state_dict())
        self.model.to(device)

    def encode_images(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        import torch

        with torch.inference_mode():
            tokens = self.model.forward_features(torch.from_numpy(batch).to(self.device))
        rows = tokens[:, 0].float().cpu().numpy()
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        raise KshotError(f"{self.variant.model} has no text tower; leave --tier out.")

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.variant.model,
            "library": "timm",
            "activation": type(self.model.blocks[0].mlp.act).__name__,
            "weights_sha256": self.weights_sha256,
            "preprocessing": self.preprocessing.facts(),
        }


def check_architecture(model: Any, name: str) -> None:
    """Raise unless the model is the one the name promises."""
    variant = VARIANTS[name]
    shapes = {
        "width": model.embed_dim,
        "layers": len(model.blocks),
        "patch": model.patch_embed.patch_size[0],
        "prefix tokens": model.num_prefix_tokens,
        "parameters": parameter_count(model),
    }
    expected = dict(
        zip(shapes, (VisionEncoder.dim, 12, variant.patch, variant.prefix_tokens, variant.parameters), strict=True)
    )
    wrong = [f"{key} {shapes[key]}, expected {expected[key]}" for key in shapes if shapes[key] != expected[key]]
    if wrong:
        raise KshotError(f"this checkpoint is not {name}: {'; '.join(wrong)}.")


def check_trained(encoder: Encoder, name: str) -> None:
    """Raise where four pictures that have nothing in common look alike.

    A class token of random weights hardly depends on the picture: every cosine is above 0.99.
    """
    rows = encoder.encode_images(np.stack([encoder.preprocessing(picture) for picture in _unlike_pictures()]))
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    if not np.isfinite(cosines).all() or cosines.mean() > MOST_ALIKE:
        raise KshotError(
            f"the weights of {name} are not trained: a grid, a disc, a slope and noise look alike to it (mean cosine "
            f"{cosines.mean():.3f}). Give a genuine checkpoint with --weights."
        )


def _unlike_pictures() -> "list[Image]":
    from PIL import Image

    down, right = np.mgrid[:PIXELS, :PIXELS]
    grid = np.where((down // 16 + right // 16) % 2, 255, 0)
    disc = np.where((down - PIXELS / 2) ** 2 + (right - PIXELS / 2) ** 2 < (PIXELS / 4) ** 2, 255, 0)
    noise = np.random.default_rng(0).integers(0, 256, (PIXELS, PIXELS, 3))
    colours = (
        np.stack([grid] * 3, -1),
        np.stack([disc, 255 - disc, disc], -1),
        np.stack([right, down, right[::-1]], -1),
        noise,
    )
    return [Image.fromarray(values.astype(np.uint8)) for values in colours]


def parameter_count(model: Any) -> int:
    """Position tables depend on the input size and are left out."""
    return sum(p.numel() for key, p in model.named_parameters() if key != "pos_embed")
