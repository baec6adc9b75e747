"""The encoder as an ONNX file, run by onnxruntime, against Pillow and torch."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from kshot.encode.onnx import onnx_model, scaling_graph
from kshot.encode.openclip import load_open_clip
from kshot.encode.preprocess import Preprocessing

CLIP = Preprocessing(224, (0.48, 0.46, 0.41), (0.27, 0.26, 0.28))
# Grey levels that a pixel of noise may differ by, where Pillow shrinks the height first, and all on average.
MOST, MOST_WHEN_TALL, MEAN = 2, 20, 0.4


def session(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def noise(width, height, seed=0):
    rng = np.random.default_rng([width, height, seed])
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    "wanted",
    [
        CLIP,
        replace(CLIP, resize_to=256),
        replace(CLIP, pixels=129),
        replace(CLIP, interpolation="bilinear"),
        replace(CLIP, resize="squash"),
    ],
    ids=["clip", "crop", "odd", "bilinear", "squash"],
)
def test_pictures_are_scaled_as_pillow_scales_them(wanted):
    """Noise is the hardest picture to filter; wide and tall, larger and smaller than the input."""
    run = session(scaling_graph(wanted))
    for size in ((300, 200), (200, 301), (224, 224), (31, 50), (1000, 230), (225, 448), (347, 1174)):
        picture = noise(*size)
        (theirs,) = run.run(None, {"picture": np.asarray(picture)})[0]
        greys = np.abs(theirs - wanted(picture)) * 255 * np.asarray(wanted.std)[:, None, None]
        assert greys.max() < (MOST_WHEN_TALL if size[1] > size[0] else MOST) + 0.01, size
        assert greys.mean() < MEAN, size


def test_an_open_clip_tower_answers_as_in_torch(tiny_clip):
    encoder = load_open_clip("tiny", tiny_clip)
    head = torch.nn.Linear(encoder.dim, 5)
    run = session(onnx_model(head, encoder.dim, encoder, {}))
    for number, size in enumerate(((40, 30), (64, 64), (33, 90))):
        picture = noise(*size, number)
        (theirs,) = run.run(None, {"picture": np.asarray(picture)})[0]
        with torch.inference_mode():
            features = encoder.tower(torch.from_numpy(encoder.preprocessing(picture)[None]))
            (ours,) = head(features).softmax(dim=1).numpy()
        np.testing.assert_allclose(theirs, ours, atol=1e-3)
