"""Torch and safetensors files against torch itself, and files that want something run."""

import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from kshot.encode.caches.arrays import Address, read_array
from kshot.errors import KshotError


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
