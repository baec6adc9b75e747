"""Malformed files: one sentence that names the file, exit code 2, nothing run, nothing written."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file
from torch_files import save_torch

from folders import assert_refused

GOOD = ("good.npz", "--backbone", "mine", "--test", "Xt,yt", "--text", "photo=T", "--classes", "names")
CASES = {}


def malformed(make):
    """A case writes its bad file and returns the name that must be told and the arguments that reach it."""
    CASES[make.__name__] = make
    return make


def changed(name, **arrays):
    """A case that replaces arrays of the good file and reads all of them from the bad one."""

    def make(good):
        np.savez("bad.npz", **{**good, **{k: v(good) if callable(v) else v for k, v in arrays.items()}})
        return "bad.npz", ("bad.npz", *GOOD[1:], "--pool", "X,y")

    CASES[name] = make


def pool_file(name, write):
    """A case in which the pool's features come from a bad file."""

    def make(good):
        write(Path(name), good)
        return name, (*GOOD, "--pool", f"{name},y")

    CASES[name] = make


def poisoned(array, row, value):
    found = np.array(array, np.float32)
    found[row, 0] = value
    return found


changed("pool_of_other_dimension", X=lambda g: g["X"][:, :8])
changed("test_of_other_dimension", Xt=lambda g: np.hstack([g["Xt"], g["Xt"]]))
changed("text_of_other_dimension", T=lambda g: g["T"][:, :5])
changed("transposed_and_short", X=lambda g: g["X"][:-1].T)
changed("too_few_labels", y=lambda g: g["y"][:-1])
changed("too_many_labels", y=lambda g: np.append(g["y"], 0))
changed("fractional_labels", y=lambda g: g["y"] + 0.5)
changed("labels_not_a_number", y=lambda g: np.where(g["y"] == 1, np.nan, g["y"]))
changed("infinite_labels", y=lambda g: np.where(g["y"] == 1, np.inf, g["y"]))
changed("negative_labels", y=lambda g: g["y"] - 1)
changed("labels_from_one", y=lambda g: g["y"] + 1)
changed("huge_labels", y=lambda g: g["y"] + 2**40)
changed("complex_labels", y=lambda g: g["y"] + 1j)
changed("labels_that_are_dates", y=lambda g: g["y"].astype("datetime64[D]"))
changed("labels_that_are_unknown_words", y=lambda g: np.array(["cat", "dog", "cow"])[g["y"]])
changed("label_without_text", yt=lambda g: np.where(g["yt"] == 2, 3, g["yt"]))
changed("text_row_without_labels", y=lambda g: np.where(g["y"] == 2, 0, g["y"]))
changed("fewer_text_rows", T=lambda g: g["T"][:2])
changed("more_text_rows", T=lambda g: np.vstack([g["T"], -g["T"][:1]]))
changed("one_name_too_many", names=np.array(["cat", "dog", "fox", "owl"]))
changed(
    "labels_in_words_of_two_classes",
    y=lambda g: np.array(["cat", "dog", "dog"])[g["y"]],
    names=np.array(["cat", "dog", "dog"]),
)
changed("a_name_twice_and_its_number", names=np.array(["dog (2)", "dog", "dog"]))
changed("an_empty_name", names=np.array(["cat", "dog", ""]))
changed("names_that_are_numbers", names=np.arange(3))
changed("nan_row", X=lambda g: poisoned(g["X"], 3, np.nan))
changed("infinite_row", Xt=lambda g: poisoned(g["Xt"], 3, np.inf))
changed("nan_text", T=lambda g: poisoned(g["T"], 1, np.nan))
changed("zero_row", X=lambda g: g["X"] * (np.arange(24) != 5)[:, None])
changed("whole_numbers_as_features", X=lambda g: np.round(10 * g["X"]).astype(int))
changed("complex_features", X=lambda g: g["X"] + 1j)
changed("no_rows", X=lambda g: g["X"][:0], y=lambda g: g["y"][:0])
changed("no_dimensions", X=lambda g: g["X"][:, :0])
changed("three_axes", X=lambda g: g["X"][None])
changed("one_axis", X=lambda g: g["X"][:, 0])
changed("single_value", X=np.float32(1))
changed("two_hot_values", y=lambda g: np.eye(3)[g["y"]] + np.eye(3)[0])
changed("soft_values", y=lambda g: np.full((24, 3), 1 / 3))
changed(
    "a_million_rows_with_one_nan",
    X=lambda g: poisoned(np.ones((1_000_000, 16), np.float16), 999_999, np.nan),
    y=np.arange(1_000_000) % 3,
)


class Payload:
    def __reduce__(self):
        return (Path.touch, (Path("ran"),))


def npy(header: str, content: bytes) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def safetensors(header: object) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(64)


def cut_torch(path, good, share):
    save_torch(path, good["X"])
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def flipped_torch(path, good):
    save_torch(path, good["X"])
    content = bytearray(path.read_bytes())
    content[content.index(good["X"].tobytes()[:16])] ^= 1
    path.write_bytes(content)


def compressed_torch(path, good):
    save_torch(path, good["X"])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def other_zip(path, good):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.txt", "no torch")


BYTES = {
    **dict.fromkeys(("empty.pt", "empty.npy", "empty.npz", "empty.safetensors", "empty.parquet"), b""),
    "text.pt": b"no torch file",
    "pickle.pt": pickle.dumps({"a": [Payload()]}, 2),
    "lie.npy": npy("{'descr':'<f4','fortran_order':False,'shape':(24,16)}", b"few"),
    "huge.npy": npy("{'descr':'<f4','fortran_order':False,'shape':(10**9,10**9)}", b""),
    "no-header.npy": npy("nonsense", b""),
    "code.npy": npy("__import__('pathlib').Path('ran').touch()", b""),
    "long.safetensors": b"\xff" * 40,
    "list.safetensors": safetensors([1, 2]),
    "numbers.safetensors": safetensors({"a": 3}),
    "no-json.safetensors": safetensors(b"{"),
    "offsets.safetensors": safetensors({"a": {"dtype": "F32", "shape": [24, 16], "data_offsets": [-8, 10**6]}}),
    "kind.safetensors": safetensors({"a": {"dtype": "F8_E4M3", "shape": [64], "data_offsets": [0, 64]}}),
    "text.parquet": b"PAR1 but not really PAR1",
    "features.csv": b"1,2,3",
}
TORCH = {"list": [1, 2], "number": 7, "payload": {"a": [Payload()]}, "nested": [{}]}
VECTORS = {
    "ragged": [[1.0], [1.0, 2.0]] * 12,
    "missing": [[1.0, 2.0], None] * 12,
    "holes": [[1.0, None]] * 24,
    "words": [["a", "b"]] * 24,
    "structs": [{"a": 1}] * 24,
}
for name, content in BYTES.items():
    pool_file(name, lambda path, good, content=content: path.write_bytes(content))
for name, content in TORCH.items():
    pool_file(f"{name}.pt", lambda path, good, content=content: torch.save(content, path))
for name, rows in VECTORS.items():
    pool_file(f"{name}.parquet", lambda path, good, rows=rows: pq.write_table(pa.table({"v": rows}), path))
pool_file("cut.pt", lambda path, good: cut_torch(path, good, 0.5))
pool_file("cut-late.pt", lambda path, good: cut_torch(path, good, 0.97))
pool_file("flipped.pt", flipped_torch)
pool_file("bomb.pt", compressed_torch)
pool_file("other.pth", other_zip)
pool_file("objects.npy", lambda path, good: np.save(path, np.array([Payload()]), allow_pickle=True))
pool_file("objects.npz", lambda path, good: np.savez(path, X=np.array([Payload()]), allow_pickle=True))
pool_file("several.npz", lambda path, good: np.savez(path, a=good["X"], b=good["X"]))
pool_file("none.npz", lambda path, good: np.savez(path))


@malformed
def one_dimension_other_in_safetensors(good):
    save_file({"X": good["X"][:, :9].copy()}, "bad.safetensors")
    return "bad.safetensors", (*GOOD, "--pool", "bad.safetensors,good.npz:y")


@malformed
def neither_pool_nor_layout(good):
    Path("folder").mkdir()
    return "folder", ("folder", "--backbone", "mine")


@malformed
def half_a_tip_cache(good):
    Path("folder").mkdir()
    save_torch(Path("folder/keys_16shots.pt"), good["X"])
    return "values_16shots.pt", ("folder", "--backbone", "mine")


@malformed
def ids_that_repeat(good):
    np.savez("bad.npz", ids=np.array(["a"] * 24))
    return "ids repeat", (*GOOD, "--pool", "X,y,bad.npz:ids")


@malformed
def fewer_ids(good):
    np.savez("bad.npz", ids=np.array(["a", "b"]))
    return "bad.npz", (*GOOD, "--pool", "X,y,bad.npz:ids")


ARGUMENTS = {
    "no_such_key": ("good.npz", (*GOOD, "--pool", "nothing,y")),
    "no_labels_named": ("--pool X", (*GOOD, "--pool", "X")),
    "backbone_of_other_dimension": ("good.npz", (GOOD[0], "--backbone", "ViT-B-16", *GOOD[3:], "--pool", "X,y")),
    "a_name_that_is_no_folder_name": ("../outside", (*GOOD, "--pool", "X,y", "--dataset", "../outside")),
}
CASES |= {name: lambda good, case=case: case for name, case in ARGUMENTS.items()}


CLASS_NAMES = {
    "cut.json": b'["cat", "dog"',
    "numbers.json": b"[1, 2, 3]",
    "deep.json": b"[" * 100_000,
    "latin.txt": b"caf\xe9\ndog\nfox\n",
    "empty.txt": b"",
    "split.json": b'{"train": [["a.jpg", 0, "cat"], ["b.jpg", 0, "dog"]], "val": [], "test": []}',
}


def classes_file(name):
    def make(good):
        Path(name).write_bytes(CLASS_NAMES[name])
        return name, (*GOOD[:-2], "--pool", "X,y", "--classes", name)

    return make


CASES |= {name: classes_file(name) for name in CLASS_NAMES}


@pytest.mark.parametrize("case", CASES)
def test_malformed(kshot, arrays, case):
    np.savez("good.npz", **arrays)
    told, arguments = CASES[case](arrays)
    assert_refused(kshot("import", *arguments), told)
    assert not Path("features").exists() or not list(Path("features").rglob("*"))
    assert not Path("ran").exists()


def test_there_are_at_least_forty_and_the_good_file_passes(imported, arrays):
    assert len(CASES) >= 40
    np.savez("good.npz", **arrays)
    code, out, error = imported(*GOOD, "--pool", "X,y")
    assert (code, error) == (0, "")
    assert "zero-shot with tier photo: 100.0 %" in out
    pickle.loads(pickle.dumps(Payload()))  # noqa: S301  the payload does work where pickle is used
    assert Path("ran").exists()
