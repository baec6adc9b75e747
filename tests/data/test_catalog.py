import csv
from pathlib import Path

import pytest

from kshot.data import catalog
from kshot.data.catalog import backbones, datasets, tiers
from kshot.encode.lite import VARIANTS


def test_the_ten_datasets_carry_their_published_numbers(published):
    with (published / "datasets.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    for row in rows:
        entry = datasets()[row["dataset"]]
        assert entry.classes == int(row["classes"])
        assert entry.n_test == int(row["n_test"])
        assert entry.split == row["pool_split"].removesuffix("-split")
        assert entry.band == (int(row["published_low"]), int(row["published_high"]))


def test_clip_benchmark_names_exist_in_published_results(published):
    with (published / "zero_shot_clip_benchmark.csv").open() as file:
        known = {row["dataset"] for row in csv.DictReader(file)}
    named = {entry.wds for entry in datasets().values() if entry.wds}
    assert named <= known
    assert len(named) == 10


def test_every_template_has_one_place_for_the_class():
    for entry in datasets().values():
        assert all(template.count("{}") == 1 for template in (entry.template, *entry.templates))


def test_eight_encoders_of_the_study_two_without_text_and_four_light_ones():
    assert len(backbones()) == 12
    assert all("not CLIP" in backbones()[name].title for name in VARIANTS)
    assert [name for name, entry in backbones().items() if not entry.text] == ["DINOv2-B-14", "DINOv3-B-16"]
    assert all(
        "quickgelu" in e.open_clip[0] for e in backbones().values() if e.open_clip and e.open_clip[1] == "openai"
    )


def test_four_tiers():
    assert list(tiers()) == ["photo", "dataset", "ensemble", "cupl"]


@pytest.mark.parametrize(
    ("names", "encoders", "command"),
    [
        (["Pets"], [], "kshot encode --dataset Pets --backbone ViT-B-16 --features mine --tier photo --tier dataset"),
        (["Pets", "DTD"], ["RN50"], "kshot encode --dataset Pets --dataset DTD --backbone RN50 --features mine"),
        (list(catalog.distributed()), ["RN50", "ViT-L-14"], "--dataset paper --backbone RN50 --backbone ViT-L-14"),
        (["DTD-coop"], ["RN50"], "kshot encode split_zhou_DTD.json --backbone RN50 --features mine"),
        (["digits"], ["ViT-B-16"], "python -m tools.open_sets digits --backbone ViT-B-16 --features mine"),
    ],
)
def test_what_is_known_but_not_encoded_comes_with_its_command(names, encoders, command):
    said = catalog.not_encoded(names, encoders, Path("mine"))
    assert said.startswith(f"not encoded in mine yet: {', '.join(names)}")
    assert command in said.split("Type: ")[1]


@pytest.mark.parametrize(("name", "encoders"), [("nothing", []), ("UCF101", []), ("Pets", ["ViT-B-61"])])
def test_what_is_not_known_has_no_command(name, encoders):
    assert catalog.not_encoded([name], encoders, Path("mine")) is None
