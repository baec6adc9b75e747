"""A key depends on the draw, the recipe and the features that are looked at, and on nothing else."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kshot
from folders import edit
from kshot.bench.query import Keys, query
from kshot.bench.recipes import described
from kshot.bench.records import Records
from kshot.bench.study import MethodSpec, load_study, parse_study
from kshot.data.simulated import BACKBONE, WORLDS, write
from kshot.data.store import Store
from kshot.errors import StudyError
from kshot.types import Views
from small_store import write_stratum

ROOT = Path(__file__).resolve().parents[2]
POOL = 6
GRID = {
    "name": "s",
    "datasets": ["pets", "birds"],
    "backbones": ["mine"],
    "tiers": ["photo"],
    "shots": [1, 2, 4],
    "seeds": [0, 1],
    "methods": ["zero_shot", "ncm", "clap", "mse_oracle", "gda_alpha_val"],
}


@pytest.fixture
def store(tmp_path):
    """Six pool pictures per class; birds have official validation pictures too."""
    found = Store(tmp_path / "features")
    write_stratum(found, "pets", "mine", {"pool": POOL, "test": 5})
    write_stratum(found, "birds", "mine", {"pool": POOL, "test": 5, "val": 4})
    return found


def study(**changes):
    return parse_study(GRID | {"least_left": 0} | changes, "s")


def keys(asked, store):
    """Keys by cell and name."""
    found = query(asked, store)
    return {(cell, one.spec.name): one.key for cell, one in found.asked() if one.key}


def test_the_kept_records_are_exactly_those_that_the_study_asks_for(tmp_path):
    kept = Records(ROOT / "docs/open/records")
    asked = query(load_study("open"), Store(tmp_path)).keys()
    assert asked == kept.keys() == kept.saved("open").keys()
    assert len(asked) == 7700


# What is edited, and the part of 60 keys that stay what they were.
EDITS = {
    "study renamed": (lambda s: replace(s, name="other"), 1.0),
    "answers not kept": (lambda s: replace(s, answers=False), 1.0),
    "rule for thin pools": (lambda s: replace(s, least_left=1), 1.0),
    "precision": (lambda s: replace(s, dtype="float64"), 0.0),
    "cap of the pool": (lambda s: replace(s, pool_cap=5), 0.0),
    "a seed more": (lambda s: s.with_seeds((0, 1, 2)), 1.0),
    "a K more": (lambda s: s.with_shots((1, 2, 3, 4)), 1.0),
    "a method more": (lambda s: s.with_methods(["lpp"]), 1.0),
    "a dataset fewer": (lambda s: s.only(datasets=["pets"]), 0.5),
    "given shots of one draw": (
        lambda s: replace(s, supports='{"pets": {"1": {"0": ["pool/0", "pool/1", "pool/2"]}}}'),
        1 - 5 / 60,
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_moves_the_keys_that_it_must(store, name):
    change, kept = EDITS[name]
    before, after = keys(study(), store), keys(change(study()), store)
    assert len(before) == 60
    same = sum(after.get(place) == key for place, key in before.items())
    assert same == round(kept * len(before))


def test_two_names_of_one_recipe_share_a_record(store):
    named = [{"use": "clap", "as": "plain", "penalty": False}, "zs_lp", {"use": "clap", "as": "again", "penalty": True}]
    found = query(study(methods=["clap", *named]), store)
    for one in found.cells.values():
        assert one["plain"].key == one["zs_lp"].key != one["clap"].key == one["again"].key


def test_only_what_a_record_looks_at_is_in_its_key(store):
    before = keys(study(), store)
    text = store.text("pets", "mine", "photo")
    store.write_text("pets", "mine", "other", text.prototypes, text.norms, text.manifest.classes)
    assert keys(study(), store) == before, "a tier that nobody asked for"
    val = store.images("birds", "mine", "val")
    store.write_images("birds", "mine", "val", np.asarray(val.X)[:, ::-1].copy(), val.y, val.ids, val.manifest.classes)
    after = keys(study(), store)
    moved = {(cell.dataset, name) for (cell, name), key in before.items() if after[cell, name] != key}
    assert moved == {("birds", "gda_alpha_val")}
    store.write_text("pets", "mine", "photo", text.prototypes[:, ::-1].copy(), text.norms, text.manifest.classes)
    moved = {cell.dataset for (cell, name), key in before.items() if keys(study(), store)[cell, name] != key}
    assert moved == {"pets", "birds"}


def test_views_count_where_a_method_uses_them(tmp_path):
    write(WORLDS["sim-satellite"], store := Store(tmp_path))
    pool = store.images("sim-satellite", BACKBONE, "pool")
    for number in range(2):
        part = f"pool-tip-view{number:02d}"
        store.write_images("sim-satellite", BACKBONE, part, pool.X, pool.y, pool.ids, pool.manifest.classes)
    grid = {"datasets": ["sim-satellite"], "backbones": [BACKBONE], "tiers": ["dataset"]}
    plain = study(**grid, methods=["zero_shot", "clap"])
    viewed = study(**grid, methods=["zero_shot", "clap"], views={"recipe": "tip", "count": 2})
    one, two = keys(plain, store), keys(viewed, store)
    assert {name for cell, name in one if one[cell, name] != two[cell, name]} == {"clap"}
    assert viewed.methods()["clap"].views == Views("tip", 2)


def test_a_methods_version_is_in_its_key(store):
    def newer(spec):
        return replace(described(spec), version=2) if spec.use == "clap" else described(spec)

    asked, hashes = study(), store.hashes([("pets", "mine")])
    before, after = (Keys(asked, hashes, asked.methods().values(), how) for how in (described, newer))
    cell = next(cell for cell in asked.cells() if cell.dataset == "pets")
    moved = {n for n, spec in asked.methods().items() if before.key(cell, spec) != after.key(cell, spec)}
    assert moved == {"clap"}


def test_thin_pools(store):
    """One rule: methods that look at pool pictures are undefined below `least_left`; nobody else is touched."""
    needy = {"pets": {"mse_oracle", "gda_alpha_val"}, "birds": {"mse_oracle"}}
    for least in (0, 3, 5):
        found = query(study(least_left=least, shots=[1, 2, 4, 6, 7]), store)
        assert {cell.shots for cell in found.dropped} == {7}
        for cell, one in found.asked():
            left = POOL - cell.shots
            thin = one.spec.name in needy[cell.dataset] and left < max(least, 1)
            reason = f"a class keeps {left} pool pictures beside its shots, fewer than {max(least, 1)}"
            assert one.reason == (reason if thin else "")
            assert bool(one.key) != thin
    paper = query(study(drop_thin=True, least_left=5, shots=[1, 2]), store)
    assert {cell.shots for cell in paper.dropped} == {2}


def test_compare_and_run_answer_alike_on_a_small_pool(store, tmp_path):
    features = kshot.load_features("pets", "mine", features=store.root)
    by_compare = kshot.compare(GRID["methods"], features, shots=[1, 2, 4], seeds=2, workers=1)
    by_run = kshot.run(study(least_left=5, datasets=["pets"]), features=store.root, records=tmp_path / "r", workers=1)
    rows = [
        {(r["shots"], r["seed"], r["method"]): (r["status"], r["accuracy"]) for r in results.records.to_pylist()}
        for results in (by_compare, by_run)
    ]
    assert rows[0] == rows[1]
    assert {key[2] for key, (status, _) in rows[0].items() if status == "undefined" and key[0] > 1} == {
        "mse_oracle",
        "gda_alpha_val",
    }


def test_the_papers_matrix_has_4800_cells(tmp_path):
    found = query(load_study("paper"), Store(tmp_path), must_be_stored=False)
    assert (len(found.cells), len(found.dropped)) == (4800, 200)
    assert len(found.keys()) == 46_800


def test_no_text_is_a_reason(tmp_path):
    store = Store(tmp_path)
    write_stratum(store, "pets", "mine")
    for path in (tmp_path / "pets" / "mine").glob("text-*"):
        path.unlink()
    found = query(study(datasets=["pets"], methods=["clap", "ncm"]), store)
    assert {(one.spec.name, one.reason) for _, one in found.asked()} == {("clap", "mine has no text"), ("ncm", "")}


def test_a_class_of_the_script_is_refused_by_its_name(store):
    named = study().with_methods([MethodSpec("mine", "__main__:Mine")])
    with pytest.raises(StudyError, match=r"Give the object: heads=\[Mine\(\)\]"):
        query(named, store)


def test_the_old_word_for_thin_pools_names_the_new_one(folder):
    edit("small.toml", "name", "min_residue = 3\nname")
    with pytest.raises(StudyError, match="least_left = 3"):
        load_study("small.toml")
    for function in (kshot.compare,):
        with pytest.raises(TypeError, match="it is called least_left now"):
            function("ncm", "cifar10/lite0/photo", min_residue=0)
