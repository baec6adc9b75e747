"""Torch and safetensors files against torch itself, and files that want something run."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_zip
from safetensors.torch import save_file

from kshot.encode.caches.arrays import Address, read_array
from kshot.errors import InputError, KshotError


def assert_equal(found, tensor):
    expected = (tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()).numpy()
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_tensors_are_those_that_torch_saved(tmp_path):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32))
    plain = {"half": x.half(), "bfloat16": x.bfloat16(), "double": x.double(), "labels": torch.arange(5)}
    views = {"transposed": x.T, "strided": x[1:4, ::2], "empty": x[:0], "parameter": torch.nn.Parameter(x)}
    torch.save(plain | views, tmp_path / "all.pt")
    save_file(plain, tmp_path / "all.safetensors")
    torch.save(x, tmp_path / "one.pt")
    torch.save(x, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for name, tensor in (plain | views).items():
        assert_equal(read_array(Address(tmp_path / "all.pt", name)), tensor)
    for name, tensor in plain.items():
        assert_equal(read_array(Address(tmp_path / "all.safetensors", name)), tensor)
    for file in ("one.pt", "old.pt"):
        assert_equal(read_array(Address(tmp_path / file)), x)


def test_without_torch_the_pip_command_is_printed(tmp_path, monkeypatch):
    torch.save(torch.zeros(2, 3), tmp_path / "x.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(KshotError, match=r"this needs torch.*pip install 'kshot\[encode\]'"):
        read_array(Address(tmp_path / "x.pt"))


@pytest.mark.parametrize(
    "forged", [{"size": (4, 300)}, {"size": (-1, 3)}, {"stride": (1000, 1)}, {"offset": -2}, {"offset": 11}]
)
def test_a_tensor_never_reaches_outside_its_bytes(tmp_path, forged):
    torch_zip.save(tmp_path / "x.pt", np.ones((4, 3), np.float32), **forged)
    with pytest.raises(InputError, match=r"x\.pt cannot be read"):
        read_array(Address(tmp_path / "x.pt"))


class Payload:
    """Runs a command where it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("zipped", [True, False])
def test_a_payload_is_refused_by_name_and_not_run(tmp_path, protocol, zipped):
    marker = tmp_path / "ran"
    content = pickle.dumps({"a": [Payload(marker)]}, protocol)
    if zipped:
        torch_zip.write(tmp_path / "x.pt", content, {})
    else:
        (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.pt"):
        read_array(Address(tmp_path / "x.pt"))
    assert not marker.exists()
    pickle.loads(content)  # noqa: S301  the payload does work where pickle is used
    assert marker.exists()
