"""The text-free encoders: which checkpoints are refused, and how pictures are prepared."""

import numpy as np
import pytest
import torch

from kshot.encode.encoders import VISION, VisionEncoder
from kshot.encode.protocol import import_torchvision
from kshot.errors import KshotError


def test_geometry_differs_between_the_two():
    """A picture twice as wide as high: DINOv2 crops its middle, DINOv3 squeezes all of it."""
    from PIL import Image

    edge = np.zeros((300, 600, 3), np.uint8)
    edge[:, :60] = 255
    two, three = (VISION[name].preprocessing(Image.fromarray(edge)) for name in VISION)
    assert two.shape == three.shape == (3, 224, 224)
    black = -np.array([0.485, 0.456, 0.406]) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(two.min(axis=(1, 2)), black, atol=1e-5)
    np.testing.assert_allclose(two.max(axis=(1, 2)), black, atol=1e-5)
    assert np.mean(three[0] > 2) == pytest.approx(0.1, abs=0.01)


@pytest.mark.slow
def test_a_local_checkpoint_of_random_weights(tmp_path):
    import_torchvision()
    import timm
    from safetensors.torch import save_file

    torch.manual_seed(0)
    variant = VISION["DINOv3-B-16"]
    model = timm.create_model(variant.model, pretrained=False, num_classes=0, img_size=224).eval()
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    encoder = VisionEncoder("DINOv3-B-16", tmp_path / "model.safetensors")
    batch = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    with torch.inference_mode():
        theirs = model.forward_features(torch.from_numpy(batch))[:, 0].numpy()
    np.testing.assert_allclose(
        encoder.encode_images(batch), theirs / np.linalg.norm(theirs, axis=1, keepdims=True), atol=1e-5
    )
    with pytest.raises(KshotError, match="no text tower"):
        encoder.encode_prompts(["x"])
    state = model.state_dict()
    others = ({"patch_embed.proj.weight": state["patch_embed.proj.weight"]}, state | {"more": torch.zeros(1)})
    for other in others:
        save_file(other, tmp_path / "other.safetensors")
        with pytest.raises(KshotError, match="cannot load DINOv3-B-16"):
            VisionEncoder("DINOv3-B-16", tmp_path / "other.safetensors")
