"""A picture head as an ONNX graph: features of the head's encoder in, probabilities out."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from kshot.apply.head import PictureHead
from kshot.apply.predict import linear_parts
from kshot.errors import need
from kshot.files import write_bytes

OPSET = 17
IR_VERSION = 8


def export_onnx(head: PictureHead, path: Path) -> None:
    """features (n, d) → scaled to unit length → one linear map → softmax; class names and the encoder's facts
    are in the metadata. The encoder itself is not part of the graph."""
    onnx = need("onnx", "serve")
    model = _model(onnx.helper, onnx.TensorProto.FLOAT, head)
    onnx.checker.check_model(model)
    write_bytes(path, model.SerializeToString())


def _model(helper: Any, floats: int, head: PictureHead) -> Any:
    coef, bias = linear_parts(head)
    constants = {
        "weights": (coef.T / head.about.temperature).astype(np.float32),
        "biases": (bias / head.about.temperature).astype(np.float32),
    }
    nodes = [
        helper.make_node("ReduceL2", ["features"], ["norms"], axes=[1], keepdims=1),
        helper.make_node("Div", ["features", "norms"], ["unit"]),
        helper.make_node("MatMul", ["unit", "weights"], ["products"]),
        helper.make_node("Add", ["products", "biases"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "kshot",
        [helper.make_tensor_value_info("features", floats, ["n", coef.shape[1]])],
        [helper.make_tensor_value_info("probabilities", floats, ["n", len(coef)])],
        [
            helper.make_tensor(name, floats, value.shape, value.tobytes(), raw=True)
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    about = head.about
    told = {
        "classes": about.classes,
        "encoder": about.encoder,
        "backbone": about.backbone,
        "method": about.method,
        "threshold": about.threshold,
    }
    helper.set_model_props(model, {key: json.dumps(v, ensure_ascii=False) for key, v in told.items()})
    return model
