"""A picture encoder as ONNX: from the pixels of a decoded picture to features that are not yet of unit length.

Pictures are scaled as Pillow scales them, to the last bit, which the standard's own Resize does not. Pillow filters one
side, then the other, with weights of 22 binary places, and rounds to a byte after each. Rows come first, but since
Pillow 13 not where the height shrinks by more than twice as many pixels as the width. Here each pass is a matrix of
these weights (out, in), computed from the picture's size, times the picture in double precision, which holds every sum
exactly. That costs seconds for a photo of twelve million pixels, a fraction of a second for one of a million.
"""

import io
import warnings
from typing import Any

import numpy as np

from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, need
from kshot.types import Array

OPSET = 18
PICTURE, SCALED, FEATURES = "picture", "scaled", "features"
FIXED_POINT = float(2**22)
REACH = {"bicubic": 2.0, "bilinear": 1.0}


class GraphBuilder:
    """Collects nodes and constants; a call adds one node and returns the name of its output."""

    def __init__(self, prefix: str = "kshot."):
        self.onnx = need("onnx", "serve")
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, kind: str, *inputs: "str | Array | float", output: str = "", **attributes: Any) -> str:
        named = [one if isinstance(one, str) else self._constant(np.asarray(one)) for one in inputs]
        name = output or f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, named, [name], **attributes))
        return name

    def cast(self, name: str, kind: str) -> str:
        return self("Cast", name, to=getattr(self.onnx.TensorProto, kind))

    def _constant(self, value: Array) -> str:
        name = f"{self.prefix}constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name


def add_encoder(op: GraphBuilder, encoder: Encoder) -> None:
    """From `picture`, bytes (height, width, 3) of any size, to `features` (1, d), the network as torch exports it."""
    tower = getattr(encoder, "tower", None)
    if tower is None:
        raise InputError(
            f"the encoder {encoder.facts().get('name')} cannot be put into a graph. Export the head alone: --head-only."
        )
    import torch

    module = torch.nn.Module()
    module.model = encoder.model  # pyright: ignore[reportAttributeAccessIssue]
    module.forward = tower
    pixels = encoder.preprocessing.pixels
    batch = torch.zeros(1, 3, pixels, pixels, device=next(module.parameters()).device)
    content = io.BytesIO()
    fused = torch.backends.mha.get_fastpath_enabled()
    # Attention in one fused operator is not in the standard.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # This exporter needs no further package; it warns of its successor and of every branch on a shape.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval(),
                (batch,),
                content,  # pyright: ignore[reportArgumentType]
                input_names=[SCALED],
                output_names=[FEATURES],
                opset_version=OPSET,
                dynamo=False,
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
    graph = op.onnx.load_from_string(content.getvalue()).graph
    scale_picture(op, PICTURE, encoder.preprocessing, SCALED)
    op.nodes += graph.node
    op.constants += graph.initializer


def scale_picture(op: GraphBuilder, picture: str, wanted: Preprocessing, output: str) -> None:
    """What `Preprocessing.__call__` does: bytes (height, width, 3) to floats (1, 3, pixels, pixels)."""
    size = op("Gather", op("Shape", picture), np.array([0, 1]))
    if wanted.resize == "squash":
        target = op("Identity", np.array([wanted.pixels] * 2))
    else:
        shorter = op("ReduceMin", size, keepdims=1)
        target = op("Div", op("Mul", size, np.array(wanted.resize_to or wanted.pixels)), shorter)
    heights, widths = (_weights(op, size, target, side, wanted.interpolation) for side in (0, 1))
    pixels = op.cast(op("Transpose", picture, perm=[2, 0, 1]), "DOUBLE")
    passes = {"height": heights, "width": op("Transpose", widths)}
    scaled = op(
        "If",
        _height_first(op, size, target),
        then_branch=_two_passes(op, pixels, passes, ("height", "width")),
        else_branch=_two_passes(op, pixels, passes, ("width", "height")),
    )
    beyond = op.cast(op("Sub", target, np.array(wanted.pixels)), "DOUBLE")
    # Round goes to the even neighbour here and in Python.
    start = op.cast(op("Round", op("Div", beyond, 2.0)), "INT64")
    end = op("Add", start, np.array(wanted.pixels))
    cut = op("Slice", op.cast(scaled, "FLOAT"), start, end, np.array([1, 2]))
    shares = op("Div", cut, np.array(255, np.float32))
    mean, std = (np.asarray(v, np.float32)[:, None, None] for v in (wanted.mean, wanted.std))
    centred = op("Sub", shares, mean)
    op("Unsqueeze", op("Div", centred, std), np.array([0]), output=output)


def _height_first(op: GraphBuilder, size: str, target: str) -> str:
    """Whether the installed Pillow would scale the height first."""
    from PIL import __version__

    shrinks = op("Sub", size, target)
    height, width = (op("Gather", shrinks, np.array(side)) for side in (0, 1))
    tall = op("Greater", height, op("Mul", width, np.array(2)))
    known = np.array(int(__version__.partition(".")[0]) >= 13)
    return op("And", op("And", op("Greater", height, np.array(0)), tall), known)


def _two_passes(op: GraphBuilder, pixels: str, weights: dict[str, str], order: tuple[str, str]) -> Any:
    """A branch of the graph; it reads the names of the graph around it."""
    branch = GraphBuilder(f"{op.prefix}{order[0]}.")
    for side in order:
        given = (weights[side], pixels) if side == "height" else (pixels, weights[side])
        pixels = _bytes(branch, branch("MatMul", *given))
    output = branch.onnx.helper.make_tensor_value_info(pixels, branch.onnx.TensorProto.DOUBLE, None)
    return branch.onnx.helper.make_graph(branch.nodes, order[0], [], [output], branch.constants)


def _weights(op: GraphBuilder, size: str, target: str, side: int, interpolation: str) -> str:
    """Pillow's whole-number coefficients of one side (out, in): one row for each output pixel."""
    before, after = (op.cast(op("Gather", both, np.array(side)), "DOUBLE") for both in (size, target))
    scale = op("Div", before, after)
    wide = op("Max", scale, 1.0)
    reach = op("Mul", wide, REACH[interpolation])
    centre = op("Unsqueeze", op("Mul", op("Add", op("Range", 0.0, after, 1.0), 0.5), scale), np.array([1]))
    pixel = op("Range", 0.0, before, 1.0)
    first = op("Floor", op("Add", op("Sub", centre, reach), 0.5))
    last = op("Floor", op("Add", op("Add", centre, reach), 0.5))
    inside = op("And", op("GreaterOrEqual", pixel, first), op("Less", pixel, last))
    distance = op("Mul", op("Add", op("Sub", pixel, centre), 0.5), op("Div", 1.0, wide))
    shape = _bicubic if interpolation == "bicubic" else _bilinear
    values = op("Where", inside, shape(op, op("Abs", distance)), 0.0)
    shares = op("Div", values, op("ReduceSum", values, np.array([1]), keepdims=1))
    return op("Round", op("Mul", shares, FIXED_POINT))


def _bicubic(op: GraphBuilder, x: str) -> str:
    """Keys's cubic with a = −1/2, at distances x ≥ 0."""
    near = op("Sub", op("Mul", x, 1.5), 2.5)
    near = op("Add", op("Mul", op("Mul", near, x), x), 1.0)
    far = op("Add", op("Mul", op("Sub", x, 5.0), x), 8.0)
    far = op("Mul", op("Sub", op("Mul", far, x), 4.0), -0.5)
    return op("Where", op("Less", x, 1.0), near, op("Where", op("Less", x, 2.0), far, 0.0))


def _bilinear(op: GraphBuilder, x: str) -> str:
    return op("Max", op("Sub", 1.0, x), 0.0)


def _bytes(op: GraphBuilder, sums: str) -> str:
    """Sums of bytes times whole-number weights, rounded to bytes."""
    rounded = op("Floor", op("Div", op("Add", sums, FIXED_POINT / 2), FIXED_POINT))
    return op("Clip", rounded, 0.0, 255.0)
