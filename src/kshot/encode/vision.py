"""Encoders without a text tower, for the text-free arm: DINOv2 and DINOv3 through timm.

timm refuses a checkpoint whose tensors do not fit the architecture. DINOv2 scales the shorter side to 256 and crops
224; DINOv3 scales straight to 224 × 224.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures, TorchEncoder, import_torchvision
from kshot.errors import KshotError, first_line, need

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


class VisionEncoder(TorchEncoder):
    """The class token after the last layer norm."""

    text = False
    logit_scale = None
    logit_bias = None
    library = "timm"

    def __init__(self, name: str, weights: Path | None = None, device: str = "cpu"):
        import_torchvision()
        timm = need("timm", "encode")
        model, tag, preprocessing = VARIANTS[name]
        try:
            network = timm.create_model(
                f"{model}.{tag}",
                pretrained=True,
                pretrained_cfg_overlay={"file": str(weights)} if weights is not None else None,
                img_size=preprocessing.pixels,
                num_classes=0,
            )
        except Exception as error:  # a checkpoint can be broken in as many ways as there are readers of it
            advice = "Offline, give a checkpoint with --weights."
            raise KshotError(f"cannot load {name}: {first_line(error)}. {advice}") from None
        super().__init__(network, preprocessing, device, model, type(network.blocks[0].mlp.act).__name__)

    def tower(self, batch: Any) -> Any:
        return self.model.forward_features(batch)[:, 0]

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        raise KshotError(f"{self.name} has no text tower; leave --tier out.")
