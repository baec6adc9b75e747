"""Torch files against torch itself, and files that want something run."""

import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch_zip

from kshot.encode.caches.torchfile import read_torch
from kshot.errors import InputError


def test_tensors_are_those_that_torch_saved(tmp_path):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32))
    saved = {
        "plain": x,
        "half": x.half(),
        "bfloat16": x.bfloat16(),
        "double": x.double(),
        "transposed": x.T,
        "strided": x[1:4, ::2],
        "scalar": x[2, 3],
        "empty": x[:0],
        "labels": torch.arange(5),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "flags": x[:, 0] > 0,
        "parameter": torch.nn.Parameter(x),
    }
    torch.save(saved, tmp_path / "all.pt")
    found = read_torch(tmp_path / "all.pt")
    assert found.keys() == saved.keys()
    for name, tensor in saved.items():
        expected = tensor.detach().float().numpy() if name == "bfloat16" else tensor.detach().numpy()
        assert found[name].dtype == expected.dtype, name
        assert np.array_equal(found[name], expected), name
    torch.save(x, tmp_path / "one.pt")
    assert np.array_equal(read_torch(tmp_path / "one.pt")[""], x.numpy())


def test_reading_needs_no_torch_and_no_pickle_module(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float16)
    torch_zip.save(tmp_path / "x.pt", X)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(pickle, "Unpickler", None)
    monkeypatch.setattr(pickle, "load", None)
    monkeypatch.setattr(pickle, "loads", None)
    assert np.array_equal(read_torch(tmp_path / "x.pt")[""], X)


@pytest.mark.parametrize(
    "forged",
    [
        {"size": (4, 300)},
        {"size": (-1, 3)},
        {"stride": (3, -1)},
        {"stride": (1000, 1)},
        {"offset": -2},
        {"offset": 11},
        {"size": (2**30, 2**30), "stride": (2**30, 1)},
    ],
)
def test_a_tensor_never_reaches_outside_its_bytes(tmp_path, forged):
    torch_zip.save(tmp_path / "x.pt", np.ones((4, 3), np.float32), **forged)
    with pytest.raises(InputError, match=r"x\.pt .*outside its bytes"):
        read_torch(tmp_path / "x.pt")


class Payload:
    """Runs a command where it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrapped", [lambda p: p, lambda p: {"a": [p]}, lambda p: (p, 1)])
def test_a_payload_is_refused_by_name_and_not_run(tmp_path, protocol, wrapped):
    marker = tmp_path / "ran"
    content = pickle.dumps(wrapped(Payload(marker)), protocol)
    torch_zip.write(tmp_path / "x.pt", content, {})
    with pytest.raises(InputError, match=r"x\.pt .*nothing in it was run"):
        read_torch(tmp_path / "x.pt")
    assert not marker.exists()
    pickle.loads(content)  # noqa: S301  the payload does work where pickle is used
    assert marker.exists()


def test_compressed_archives_are_refused_before_they_are_unpacked(tmp_path):
    torch_zip.save(tmp_path / "x.pt", np.zeros((1000, 1000), np.float32), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="compressed"):
        read_torch(tmp_path / "x.pt")
