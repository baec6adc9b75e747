"""Encoders without a text tower, for the text-free arm: DINOv2 and DINOv3 through timm.

timm refuses a checkpoint whose tensors do not fit the architecture; weights that were never trained are refused here.
DINOv2 scales the shorter side to 256 and crops 224; DINOv3 scales straight to 224 × 224.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from kshot.encode.hub import first_line
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import Encoder, PromptFeatures, import_torchvision, unit_and_norms, weights_fingerprint
from kshot.errors import KshotError, need
from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_ALIKE, PIXELS = 0.95, 256
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class VisionModel(NamedTuple):
    """timm's model and tag, and how its pictures are prepared."""

    model: str
    tag: str
    preprocessing: Preprocessing


VARIANTS = {
    "DINOv2-B-14": VisionModel(
        "vit_base_patch14_dinov2", "lvd142m", Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, resize_to=256)
    ),
    "DINOv3-B-16": VisionModel(
        "vit_base_patch16_dinov3", "lvd1689m", Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, "squash", "bilinear")
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
            raise KshotError(
                f"cannot load {name}: {first_line(error)}. Offline, give a checkpoint with --weights."
            ) from None
        self.preprocessing = self.variant.preprocessing
        self.weights_sha256 = weights_fingerprint(self.model.state_dict())
        self.model.to(device)

    def encode_images(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        import torch

        with torch.inference_mode():
            tokens = self.model.forward_features(torch.from_numpy(batch).to(self.device))
        return unit_and_norms(tokens[:, 0].float().cpu().numpy()).unit

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


def check_trained(encoder: Encoder, name: str) -> None:
    """Raise if four very different pictures have nearly the same features.

    A class token of random weights hardly depends on the picture: every cosine is above 0.99.
    """
    rows = encoder.encode_images(np.stack([encoder.preprocessing(picture) for picture in _unlike_pictures()]))
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    if not np.isfinite(cosines).all() or cosines.mean() > MOST_ALIKE:
        raise KshotError(
            f"the weights of {name} are not trained: its features of a grid, a disc, a slope and noise are nearly "
            f"equal (mean cosine {cosines.mean():.3f}). Give a genuine checkpoint with --weights."
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
