"""The exported graph, run by onnxruntime, against numpy."""

import json

import numpy as np
import onnxruntime
import pytest

from kshot.encode.encoders import load_encoder
from kshot.encode.pictures import decode
from kshot.errors import InputError
from kshot.pictures.export import export_onnx
from kshot.pictures.predict import predict_files


@pytest.mark.parametrize("method", ["lpp", "loo_blend", "zero_shot"])
def test_numpy_and_onnxruntime_agree(method, shades, fit, colours, tmp_path):
    head = fit(shades, method=method).head
    export_onnx(head, tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx", providers=["CPUExecutionProvider"])
    X = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    (theirs,) = session.run(None, {"features": X})
    np.testing.assert_allclose(theirs, head.probabilities(X), atol=1e-5)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["classes"]) == ["blue", "green", "red"]
    assert json.loads(told["encoder"]) == colours.facts()


def test_pictures_go_in_and_the_answers_are_those_of_predict(sample, fit, tmp_path):
    """Drawings of many sizes, with transparency, through the small encoder."""
    for path in sample.glob("photos/*/*[!1].png"):
        path.unlink()
    encoder = load_encoder("lite0")
    head = fit(sample / "photos", encoder=encoder).head
    export_onnx(head, tmp_path / "alone.onnx", encoder)
    session = onnxruntime.InferenceSession(tmp_path / "alone.onnx", providers=["CPUExecutionProvider"])
    pictures = sorted(sample.rglob("*.png"))
    assert len(pictures) > 20
    for path, said in zip(pictures, predict_files(head, pictures, top=6, encoder=encoder), strict=True):
        (theirs,) = session.run(None, {"picture": np.asarray(decode(path, path.name, as_seen=True))})[0]
        ours = {guess.name: guess.probability for guess in said.top}
        np.testing.assert_allclose(theirs, [ours[name] for name in head.about.classes], atol=5e-3)


def test_an_encoder_that_is_no_network_is_refused(shades, fit, colours, tmp_path):
    with pytest.raises(InputError, match="--head-only"):
        export_onnx(fit(shades).head, tmp_path / "alone.onnx", colours)
