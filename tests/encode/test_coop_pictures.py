"""CoOp's splits as pictures to encode, beside the official splits in one store."""

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
from kshot.encode.sources.coop import coop_source
from kshot.encode.targets import Encoding
from kshot.errors import InputError
from kshot.types import Views
from picture_sets import CLASSES, picture

COUNTS = {"train": 3, "val": 1, "test": 2}


@pytest.fixture
def split_file(tmp_path):
    """Every class has its pictures in images/, as DTD and Pets do."""
    content = {part: [] for part in COUNTS}
    numbers = iter(range(1000))
    for label, name in enumerate(CLASSES):
        (tmp_path / "dtd" / "images" / name).mkdir(parents=True)
        for part, count in COUNTS.items():
            for _ in range(count):
                path = f"{name}/{next(numbers):03d}.png"
                (tmp_path / "dtd" / "images" / path).write_bytes(picture(label, label))
                content[part].append([path, label, name])
    file = tmp_path / "dtd" / "split_zhou_DescribableTextures.json"
    file.write_text(json.dumps(content))
    return file


def change(file, part, entry):
    content = json.loads(file.read_text())
    content[part].append(entry)
    file.write_text(json.dumps(content))


def test_parts_are_those_of_the_file(split_file):
    source = coop_source(split_file)
    content = json.loads(split_file.read_text())
    for part, name in (("pool", "train"), ("val", "val"), ("test", "test")):
        assert source.listing(part) == [(path, label) for path, label, _ in content[name]]


@pytest.mark.parametrize("name", ["DescribableTextures", "EuroSAT", "OxfordPets"])
def test_counts_of_the_published_splits(real, tmp_path, name):
    published = real.parent / "coop-splits" / f"split_zhou_{name}.json"
    if not published.is_file():
        pytest.skip("the published splits are not beside the repository")
    file = tmp_path / published.name
    file.write_bytes(published.read_bytes())
    content = json.loads(file.read_text())
    for path, *_ in (entry for part in content.values() for entry in part):
        place = tmp_path / "images" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    source = coop_source(file)
    for part, listed in (("pool", "train"), ("val", "val"), ("test", "test")):
        found = Counter(label for _, label in source.listing(part))
        assert found == Counter(label for _, label, _ in content[listed])


def test_both_protocols_lie_in_one_store_and_records_say_which(split_file, tmp_path):
    store = Store(tmp_path / "features")
    for where, names in ((str(split_file), []), (str(split_file.parent / "images"), ["DTD"])):
        (origin,) = find_origins(where, names)
        job = Encoding(origin.dataset, "colours", origin.open(), ColourEncoder(), protocol=origin.protocol)
        encode_pictures([job], store, lambda count: None, Views("tip", 1))
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
    ("entry", "says"),
    [
        (["../../secret.png", 0, "RED"], "lies outside"),
        (["RED/absent.png", 0, "RED"], "lists 1 pictures that are not in .*, first RED/absent.png"),
        (["RED/new.png", 99, ""], "label 99 of RED/new.png has no name"),
    ],
)
def test_what_a_split_must_not_say(split_file, entry, says):
    entry = [value.replace("RED", CLASSES[0]) if isinstance(value, str) else value for value in entry]
    change(split_file, "test", entry)
    with pytest.raises(InputError, match=says.replace("RED", CLASSES[0])):
        coop_source(split_file)


def test_a_split_without_pictures_beside_it_tells_where_it_belongs(split_file, tmp_path):
    lonely = tmp_path / "elsewhere" / split_file.name
    lonely.parent.mkdir()
    lonely.write_bytes(split_file.read_bytes())
    with pytest.raises(InputError, match="no picture of it lies beside it"):
        coop_source(lonely)
