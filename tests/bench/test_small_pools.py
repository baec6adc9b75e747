"""Pools that leave little beside the support: dropped by the paper's rule, kept where a study says so."""

import numpy as np
import pytest
from kshot.bench.work import find_work

from folders import edit, fill
from kshot.bench.records import Records, load_table
from kshot.bench.study import load_study, study_from_json
from kshot.data.store import Store
from kshot.errors import StudyError
from kshot.report.tables import make_table
from kshot.stats.panel import panel
from small_store import write_stratum

POOL = 6
STUDY = """
name = "small-pools"
datasets = ["pets", "birds"]
backbones = ["mine"]
tiers = ["photo"]
shots = [1, 2, 4, 6]
seeds = [0]
methods = ["zero_shot", "ncm", "loo_blend", "oracle_lambda", "mse_oracle", "gda_alpha_val"]
"""


@pytest.fixture
def store(folder):
    """Six pool pictures per class; birds have official validation pictures too."""
    (folder / "pools.toml").write_text(STUDY)
    found = Store(folder / "features")
    write_stratum(found, "pets", "mine", {"pool": POOL, "test": 5})
    write_stratum(found, "birds", "mine", {"pool": POOL, "test": 5, "val": 4})
    return found


def run(store, study):
    records = Records(store.root.parent / "records")
    fill(study, store.root, records)
    return load_table(records.folder).to_pylist()


def test_by_the_papers_rule_the_cells_are_dropped(store):
    work = find_work(load_study("pools.toml"), store, Records("records"))
    assert {cell.shots for cell in work.dropped} == {2, 4, 6}


@pytest.mark.parametrize("least", [0, 3, 5])
def test_below_min_residue_methods_that_look_at_the_rest_are_undefined(store, least):
    edit("pools.toml", "name", f"min_residue = {least}\nname")
    rows = run(store, load_study("pools.toml"))
    assert {row["shots"] for row in rows} == {1, 2, 4, 6}
    for row in rows:
        needs_rest = {"mse_oracle": True, "gda_alpha_val": row["dataset"] == "pets"}.get(row["method"], False)
        left = POOL - row["shots"]
        too_few = needs_rest and left < max(least, 1)
        needs_two_shots = row["shots"] < 2 and row["method"] in ("loo_blend", "mse_oracle", "gda_alpha_val")
        if not needs_two_shots:
            assert row["status"] == ("undefined" if too_few else "ok"), row
        if too_few:
            assert row["reason"] == f"a class keeps {left} pool pictures beside its shots, fewer than {max(least, 1)}"


def test_a_pool_smaller_than_the_support_is_dropped_all_the_same(store):
    edit("pools.toml", "shots = [1, 2, 4, 6]", "min_residue = 0\nshots = [6, 7]")
    assert {cell.shots for cell in find_work(load_study("pools.toml"), store, Records("records")).dropped} == {7}


def test_official_validation_pictures_are_what_validation_methods_see(store):
    from kshot.data.stratum import load_stratum

    for dataset, expected in (("pets", 3 * (POOL - 2)), ("birds", 3 * 4)):
        episode = load_stratum(store, dataset, "mine").episode(2, 0, None)
        seen = episode.reveal(frozenset({"validation", "pool"}))
        assert len(seen.validation.y) == expected
        assert len(seen.pool.y) == 3 * (POOL - 2)
    val = store.images("birds", "mine", "val")
    assert np.allclose(seen.validation.X, val.X, atol=1e-6)


def test_tables_say_which_methods_lack_pictures(store):
    edit("pools.toml", "name", "min_residue = 5\nname")
    run(store, load_study("pools.toml"))
    found = panel(load_table("records"))
    for table in (make_table(key, found) for key in ("leaderboard", "headline")):
        assert "Too few pool pictures beside the shots" in table.caption
        assert "validation) in 3 cells" in table.caption
        assert "MSE-oracle blend in 6 cells" in table.caption


def test_the_hash_names_the_rule_only_where_a_study_sets_it(store):
    plain = load_study("pools.toml")
    assert "min_residue" not in plain.to_json()
    edit("pools.toml", "name", "min_residue = 5\nname")
    own = load_study("pools.toml")
    assert own.hash != plain.hash
    assert study_from_json(own.to_json()) == own
    assert study_from_json(plain.to_json()) == plain
    assert not own.extends(plain)


def test_a_folder_filled_under_another_rule_is_refused(store):
    edit("pools.toml", "shots = [1, 2, 4, 6]", "shots = [1]")
    run(store, load_study("pools.toml"))
    edit("pools.toml", "name", "min_residue = 2\nname")
    with pytest.raises(StudyError, match="has min_residue 2 and not None"):
        run(store, load_study("pools.toml"))
