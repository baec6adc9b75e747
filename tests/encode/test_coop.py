import json
from collections import Counter

import pytest

from kshot.encode.sources.coop import read_split
from kshot.errors import InputError

SPLIT = {
    "train": [["a/1.jpg", 0, "cat"], ["b/1.jpg", 1, "dog"]],
    "val": [["a/2.jpg", 0, "cat"]],
    "test": [["b/2.jpg", 1, "dog"]],
}


def test_parts_and_names_in_the_order_of_their_labels(tmp_path):
    path = tmp_path / "split_zhou_Pets.json"
    path.write_text(json.dumps(SPLIT))
    split = read_split(path)
    assert split.classes == ("cat", "dog")
    assert [row.path for row in split.train] == ["a/1.jpg", "b/1.jpg"]
    assert split.val[0].label == 0
    assert split.test[0] == ("b/2.jpg", 1, "dog")


@pytest.mark.parametrize(
    ("name", "classes", "sizes"),
    [
        ("DescribableTextures", 47, (2820, 1128, 1692)),
        ("EuroSAT", 10, (13500, 5400, 8100)),
        ("OxfordPets", 37, (2944, 736, 3669)),
    ],
)
def test_the_published_splits(real, name, classes, sizes):
    path = real.parent / "coop-splits" / f"split_zhou_{name}.json"
    if not path.is_file():
        pytest.skip("the published splits are not beside the repository")
    split = read_split(path)
    assert len(split.classes) == classes
    assert tuple(map(len, (split.train, split.val, split.test))) == sizes
    content = json.loads(path.read_text())
    assert Counter(row.name for row in split.test) == Counter(entry[2] for entry in content["test"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train": [["a/1.jpg", 0, "cat"], ["b/1.jpg", 0, "dog"]]}, "label 0 two names"),
        ({"test": [["b/2.jpg", 3, "dog"]]}, "two names|0..C"),
        ({"test": [["c/2.jpg", 3, "cow"]]}, "0..C"),
        ({"test": [["a/1.jpg", 0, "cat"]]}, "twice"),
        ({"test": [["a/9.jpg", True, "cat"]]}, "each entry is"),
        ({"test": None}, "no CoOp split"),
    ],
)
def test_contradictions_are_refused_by_name(tmp_path, change, words):
    path = tmp_path / "split.json"
    path.write_text(json.dumps(SPLIT | change))
    with pytest.raises(InputError, match=f"split.json.*({words})"):
        read_split(path)
