"""Write a picture head as an ONNX graph, from pictures or from features of its encoder to probabilities."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from kshot.encode.graph import FEATURES, OPSET, PICTURE, GraphBuilder, add_encoder
from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.files import write_bytes
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import linear_parts

PROBABILITIES = "probabilities"
IR_VERSION = 8
# Limit of one ONNX file.
MOST_BYTES = 2**31 - 1


def export_onnx(head: PictureHead, path: Path, encoder: Encoder | None = None) -> None:
    """With the encoder: `picture`, bytes (height, width, 3) in RGB → probabilities (1, C).

    Without: `features` (n, d) → probabilities (n, C). Class names, threshold and encoder are in the metadata.
    """
    op = GraphBuilder()
    kinds = op.onnx.TensorProto
    given, rows = (FEATURES, kinds.FLOAT, ["n", head.shots.X.shape[1]]), "n"
    if encoder is not None:
        head.check_encoder(encoder)
        add_encoder(op, encoder)
        given, rows = (PICTURE, kinds.UINT8, ["height", "width", 3]), 1
    _add_head(op, head)
    model = _model(op, head, given, (PROBABILITIES, kinds.FLOAT, [rows, len(head.about.classes)]))
    if model.ByteSize() > MOST_BYTES:
        raise InputError("the graph would exceed 2 GB, the most of one ONNX file. Export the head alone: --head-only.")
    op.onnx.checker.check_model(model)
    write_bytes(path, model.SerializeToString())


def _add_head(op: GraphBuilder, head: PictureHead) -> None:
    """Features → scaled to unit length → one linear map → softmax."""
    coef, bias = linear_parts(head)
    weights, biases = ((part / head.about.temperature).astype(np.float32) for part in (coef.T, bias))
    unit = op("Div", FEATURES, op("ReduceL2", FEATURES, np.array([1]), keepdims=1))
    op("Softmax", op("Add", op("MatMul", unit, weights), biases), output=PROBABILITIES, axis=1)


def _model(op: GraphBuilder, head: PictureHead, given: tuple, answer: tuple) -> Any:
    helper = op.onnx.helper
    info = helper.make_tensor_value_info
    graph = helper.make_graph(op.nodes, "kshot", [info(*given)], [info(*answer)], op.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    names = ("classes", "encoder", "backbone", "method", "threshold")
    told = {name: json.dumps(getattr(head.about, name), ensure_ascii=False) for name in names}
    helper.set_model_props(model, told)
    return model
