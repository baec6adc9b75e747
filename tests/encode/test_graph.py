"""The encoder as a graph, run by onnxruntime, against Pillow and torch."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from kshot.encode.graph import FEATURES, OPSET, PICTURE, SCALED, GraphBuilder, add_encoder, scale_picture
from kshot.encode.openclip import load_open_clip
from kshot.encode.preprocess import Preprocessing

# Shrinking to 224 × 224 takes twice as many rows as columns, one more, one fewer; the last shrinks in height alone.
TALL = ((300, 376), (300, 377), (300, 375), (224, 300))
CLIP = Preprocessing(224, (0.48, 0.46, 0.41), (0.27, 0.26, 0.28))


def session(op, output):
    info = onnx.helper.make_tensor_value_info
    given = info(PICTURE, onnx.TensorProto.UINT8, ["height", "width", 3])
    answer = info(output, onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(op.nodes, "part", [given], [answer], op.constants)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
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
    """To the last bit, although noise is the hardest picture to filter; tall pictures that shrink by more than twice
    what their width does, by twice and by less among them."""
    op = GraphBuilder()
    scale_picture(op, PICTURE, wanted, SCALED)
    run = session(op, SCALED)
    for size in ((300, 200), (200, 301), (224, 224), (31, 50), (1000, 230), (225, 448), (347, 1174), *TALL):
        picture = noise(*size)
        (theirs,) = run.run(None, {PICTURE: np.asarray(picture)})[0]
        np.testing.assert_array_equal(theirs, wanted(picture))


def test_an_open_clip_tower_answers_as_in_torch(tiny_clip):
    encoder = load_open_clip("tiny", tiny_clip)
    op = GraphBuilder()
    add_encoder(op, encoder)
    run = session(op, FEATURES)
    for number, size in enumerate(((40, 30), (64, 64), (33, 90))):
        picture = noise(*size, number)
        (theirs,) = run.run(None, {PICTURE: np.asarray(picture)})[0]
        (ours,) = encoder.encode_images(encoder.preprocessing(picture)[None])
        assert theirs @ ours / np.linalg.norm(theirs) > 1 - 1e-5
