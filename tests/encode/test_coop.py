"""CoOp's splits: read, refused, and encoded beside the official splits in one store."""

import json
from collections import Counter

import pytest

from colours import ColourEncoder
from kshot.bench.cell import run_cell
from kshot.bench.study import Cell, MethodSpec
from kshot.data.store import Store
from kshot.data.stratum import load_stratum
from kshot.encode.encoding import encode_pictures
from kshot.encode.sources import find_origins
from kshot.encode.sources.coop import coop_source, read_split
from kshot.encode.targets import Encoding
from kshot.errors import InputError
from kshot.types import Views
from picture_sets import CLASSES, picture

SPLIT = {
    "train": [["a/1.jpg", 0, "cat"], ["b/1.jpg", 1, "dog"]],
    "val": [["a/2.jpg", 0, "cat"]],
    "test": [["b/2.jpg", 1, "dog"]],
}
PUBLISHED = {
    "DescribableTextures": (47, (2820, 1128, 1692)),
    "EuroSAT": (10, (13500, 5400, 8100)),
    "OxfordPets": (37, (2944, 736, 3669)),
}
PARTS = {"pool": "train", "val": "val", "test": "test"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_splits(real, name):
    path = real.parent / "coop-splits" / f"split_zhou_{name}.json"
    if not path.is_file():
        pytest.skip("the published splits are not beside the repository")
    split, content = read_split(path), json.loads(path.read_text())
    assert (len(split.classes), tuple(map(len, split[:3]))) == PUBLISHED[name]
    assert Counter(row.name for row in split.test) == Counter(entry[2] for entry in content["test"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train": [["a/1.jpg", 0, "cat"], ["b/1.jpg", 0, "dog"]]}, "label 0 two names"),
        ({"test": [["b/2.jpg", 3, "dog"]]}, "two names|0..C"),
        ({"test": [["c/2.jpg", 3, "cow"]]}, "0..C"),
        ({"test": [["a/1.jpg", 0, "cat"]]}, "twice"),
        ({"test": [["a/9.jpg", True, "cat"]]}, "each entry is"),
        ({"test": [["a/9.jpg", 0, " "]]}, "label 0 of a/9.jpg has no name"),
        ({"test": None}, "no CoOp split"),
        ({}, "no picture of it lies beside it"),
    ],
)
def test_contradictions_are_refused_by_name(tmp_path, change, words):
    path = tmp_path / "split.json"
    path.write_text(json.dumps(SPLIT | change))
    with pytest.raises(InputError, match=f"split.json.*({words})"):
        coop_source(path)


@pytest.fixture
def split_file(tmp_path):
    """Every class has its pictures in images/, as DTD and Pets do."""
    content = {part: [] for part in ("train", "val", "test")}
    for label, name in enumerate(CLASSES):
        (tmp_path / "dtd" / "images" / name).mkdir(parents=True)
        for number, part in enumerate(("train", "train", "train", "val", "test", "test")):
            path = f"{name}/{number}.png"
            (tmp_path / "dtd" / "images" / path).write_bytes(picture(label, label))
            content[part].append([path, label, name])
    file = tmp_path / "dtd" / "split_zhou_DescribableTextures.json"
    file.write_text(json.dumps(content))
    return file


def test_both_protocols_lie_in_one_store_and_records_say_which(split_file, tmp_path):
    store, content = Store(tmp_path / "features"), json.loads(split_file.read_text())
    for part, name in PARTS.items():
        assert coop_source(split_file).listing(part) == [(path, label) for path, label, _ in content[name]]
    for where, names in ((str(split_file), []), (str(split_file.parent / "images"), ["DTD"])):
        (origin,) = find_origins(where, names)
        job = Encoding(origin.dataset, "colours", origin.open(), ColourEncoder(), protocol=origin.protocol)
        encode_pictures([job], store, {Views("tip", 1): None})
    assert {m.part for m in store.manifests() if m.dataset == "DTD-coop"} == {"pool", "val", "test", "pool-tip-view00"}
    assert {m.protocol for m in store.manifests() if m.dataset == "DTD-coop"} == {"coop"}
    found = {}
    for dataset in ("DTD", "DTD-coop"):
        stratum = load_stratum(store, dataset, "colours")
        facts, _ = run_cell(Cell(dataset, "colours", "none", 1, 0), [MethodSpec("p", "logistic_probe")], stratum, None)
        found[dataset] = facts.protocol
    assert found == {"DTD": "self", "DTD-coop": "coop"}
    assert len(load_stratum(store, "DTD-coop", "colours").val.y) == len(CLASSES)


@pytest.mark.parametrize(
    ("path", "says"),
    [("../../secret.png", "lies outside"), ("absent.png", "lists 1 pictures that are not in .*, first absent.png")],
)
def test_what_a_split_must_not_list(split_file, path, says):
    content = json.loads(split_file.read_text())
    content["test"].append([path, 0, CLASSES[0]])
    split_file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=says):
        coop_source(split_file)
