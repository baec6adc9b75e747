"""Write a picture head as an ONNX graph, from pictures or from features of its encoder to probabilities."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from kshot.encode.graph import FEATURES, OPSET, PICTURE, GraphParts, encoder_parts
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, need
from kshot.files import write_bytes
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import linear_parts

IR_VERSION = 8
# Limit of one ONNX file.
MOST_BYTES = 2**31 - 1


def export_onnx(head: PictureHead, path: Path, encoder: Encoder | None = None) -> None:
    """With the encoder: `picture`, bytes (height, width, 3) in RGB → probabilities (1, C).

    Without: `features` (n, d) → probabilities (n, C). Class names, threshold and encoder are in the metadata.
    """
    onnx = need("onnx", "serve")
    own = _head_parts(onnx, head)
    if encoder is None:
        model = _model(onnx, head, own, (FEATURES, onnx.TensorProto.FLOAT, ["n", head.shots.X.shape[1]]), "n")
    else:
        head.check_encoder(encoder)
        before = encoder_parts(encoder)
        whole = GraphParts([*before.nodes, *own.nodes], [*before.constants, *own.constants])
        model = _model(onnx, head, whole, (PICTURE, onnx.TensorProto.UINT8, ["height", "width", 3]), 1)
    if model.ByteSize() > MOST_BYTES:
        raise InputError("the graph would exceed 2 GB, the most of one ONNX file. Export the head alone: --head-only.")
    onnx.checker.check_model(model)
    write_bytes(path, model.SerializeToString())


def _head_parts(onnx: Any, head: PictureHead) -> GraphParts:
    """features → scaled to unit length → one linear map → softmax."""
    coef, bias = linear_parts(head)
    constants = {
        "last": np.array([1]),
        "weights": (coef.T / head.about.temperature).astype(np.float32),
        "biases": (bias / head.about.temperature).astype(np.float32),
    }
    node = onnx.helper.make_node
    nodes = [
        node("ReduceL2", [FEATURES, "last"], ["norms"], keepdims=1),
        node("Div", [FEATURES, "norms"], ["unit"]),
        node("MatMul", ["unit", "weights"], ["products"]),
        node("Add", ["products", "biases"], ["logits"]),
        node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    return GraphParts(nodes, [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()])


def _model(onnx: Any, head: PictureHead, parts: GraphParts, given: tuple, rows: str | int) -> Any:
    helper, about = onnx.helper, head.about
    answer = ("probabilities", onnx.TensorProto.FLOAT, [rows, len(about.classes)])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(parts.nodes, "kshot", [info(*given)], [info(*answer)], parts.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    names = ("classes", "encoder", "backbone", "method", "threshold")
    helper.set_model_props(model, {name: json.dumps(getattr(about, name), ensure_ascii=False) for name in names})
    return model
