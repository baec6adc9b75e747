"""A study says which augmented views its methods get; its records and its table tell what they changed."""

import json

import numpy as np
import pytest

from folders import fill
from kshot.bench.records import Records
from kshot.bench.study import load_study, parse_study, study_from_json
from kshot.data.simulated import BACKBONE, WORLDS, write
from kshot.data.store import Store, view_part
from kshot.errors import StudyError
from kshot.results import load_records
from kshot.types import Views

NAMES = ("sim-satellite", "sim-aircraft")
GRID = {
    "name": "plain",
    "datasets": list(NAMES),
    "backbones": [BACKBONE],
    "tiers": ["dataset"],
    "shots": [1, 2],
    "seeds": [0, 1],
    "methods": ["zero_shot", "gda_alpha1"],
}
VIEWS = {"recipe": "tip", "count": 3}


def put_views(store, names=NAMES, count=3):
    rng = np.random.default_rng(1)
    for name in names:
        write(WORLDS[name], store)
        pool = store.images(name, BACKBONE, "pool")
        for number in range(count):
            X = (np.asarray(pool.X, np.float32) + rng.normal(0, 0.03, pool.X.shape)).astype(np.float16)
            part = view_part("pool", "tip", number)
            store.write_images(name, BACKBONE, part, X, pool.y, pool.ids, pool.manifest.classes)


def computed(content, folder):
    study, records = parse_study(content, "test"), Records(folder / content["name"])
    features = folder / "features"
    fill(study, features, records)
    return records.folder


def shown(folder):
    return load_records(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    put_views(Store(folder / "features"))
    return computed(GRID, folder), computed({**GRID, "name": "viewed", "views": VIEWS}, folder)


def test_gda_with_one_shot_and_views_is_no_longer_zero_shot(folders):
    plain, viewed = (load_records(folder).panel for folder in folders)
    one = plain.shots == 1
    np.testing.assert_array_equal(plain.column("gda_alpha1")[one], plain.column("zero_shot")[one])
    assert np.all(viewed.column("gda_alpha1")[one] != viewed.column("zero_shot")[one])
    np.testing.assert_array_equal(plain.column("zero_shot"), viewed.column("zero_shot"))


def test_records_say_which_views_were_used(folders):
    rows = load_records(folders[1]).to_arrow().to_pylist()
    used = {row["method"]: json.loads(row["recipe"]).get("views") for row in rows if row["dataset"] == NAMES[0]}
    assert used == {"zero_shot": None, "gda_alpha1": VIEWS}
    parts = {row["method"]: json.loads(row["features"]) for row in rows}
    assert {name for name in parts["gda_alpha1"] if "view" in name and ".json" not in name} == {
        f"pool-tip-view{number:02d}" for number in range(3)
    }
    assert not any("view" in name for name in parts["zero_shot"])


def test_the_table_pairs_within_cells(folders):
    plain, viewed = (load_records(folder).to_arrow().to_pylist() for folder in folders)
    before = {(r["dataset"], r["shots"], r["seed"]): r["accuracy"] for r in plain if r["method"] == "gda_alpha1"}
    moves = {
        k: [
            100 * (r["accuracy"] - before[r["dataset"], r["shots"], r["seed"]])
            for r in viewed
            if r["method"] == "gda_alpha1" and r["shots"] == k
        ]
        for k in (1, 2)
    }
    values = shown(folders[1]).beside(shown(folders[0])).table("augmentation").values()
    assert (values["views"], values["n"]) == (["tip × 3"], [8])
    assert values["k1"] == pytest.approx([np.mean(moves[1])])
    assert values["k2"] == pytest.approx([np.mean(moves[2])])
    assert values["all_k"] == pytest.approx([np.mean(moves[1] + moves[2])])
    assert "no augmented views" in load_records(folders[0]).table("augmentation").caption
    assert "--b" in load_records(folders[1]).table("augmentation").caption


def test_views_that_are_not_stored_are_one_clear_error(tmp_path):
    put_views(Store(tmp_path / "features"), count=2)
    with pytest.raises(StudyError, match=r"3 tip views of sim-satellite .* lacks 1 .* pool-tip-view02. .*--views 3"):
        computed({**GRID, "name": "viewed", "views": VIEWS}, tmp_path)


def test_a_study_with_views_comes_back_from_its_text():
    viewed = parse_study({**GRID, "views": VIEWS}, "test")
    assert study_from_json(viewed.to_json()) == viewed


def test_each_grid_may_have_its_recipe():
    specs = load_study("augmentation").methods()
    views = {name: spec.views for name, spec in specs.items()}
    assert views["clap"] == views["hoso"] == Views("clap", 20)
    assert views["gda_alpha1"] == Views("clap", 10)
