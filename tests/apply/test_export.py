"""The exported graph, run by onnxruntime, against numpy."""

import json

import numpy as np
import onnxruntime
import pytest

from kshot.apply.export import export_onnx
from kshot.apply.fit import fit_folder


@pytest.mark.parametrize("method", ["clap", "lpp", "loo_blend", "zero_shot"])
def test_numpy_and_onnxruntime_agree(method, shades, colours, tmp_path):
    head = fit_folder(shades, encoder=colours, method=method).head
    export_onnx(head, tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx", providers=["CPUExecutionProvider"])
    X = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    (theirs,) = session.run(None, {"features": X})
    np.testing.assert_allclose(theirs, head.probabilities(X), atol=1e-5)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["classes"]) == ["blue", "green", "red"]
    assert json.loads(told["encoder"]) == colours.facts()
