"""A study that grows: only what is new is computed, and the folder equals one computed at once."""

import pytest
from kshot.bench.compact import compact
from kshot.bench.engines.local import LocalEngine

from folders import comparable, edit, stamps
from kshot.bench.record import SECONDS
from kshot.bench.records import Records, load_table
from kshot.bench.run import WHOLE, StudyShard, compute, open_run
from kshot.bench.status import count_done, run_status, with_recorded_methods
from kshot.bench.study import load_study
from kshot.errors import StudyError
from kshot.stats.panel import panel

pytestmark = pytest.mark.ci

SMALLER = 'seeds = [0, 1, 2]\nmethods = ["zero_shot", "ncm", "loo_blend"]'
LARGER = 'seeds = [2, 0, 1, 3]\nmethods = ["js_blend", "ncm", "zero_shot", "loo_blend", "gda_alpha1"]'


def run(study, records, shard=WHOLE):
    features = records.folder.parent / "features"
    work = open_run(load_study(study), features, records)
    compute(work, features, records, LocalEngine(2), shard)
    return work


@pytest.fixture
def records(folder):
    edit("small.toml", SMALLER, LARGER, to="larger.toml")
    found = Records(folder / "records")
    run("small.toml", found)
    return found


@pytest.fixture
def at_once(folder):
    found = Records(folder / "at-once")
    run("larger.toml", found)
    return found


def seconds(records):
    """When a record was computed again, its seconds changed."""
    rows = load_table(records.folder).to_pylist()
    kept = [row for row in rows if row["method"] in ("zero_shot", "ncm", "loo_blend") and row["seed"] < 3]
    return [[row[name] for name in SECONDS] for row in kept]


def test_only_new_methods_and_cells_are_computed(records, at_once):
    before = seconds(records)
    work = run("larger.toml", records)
    assert {tuple(spec.name for spec in specs) for cell, specs in work.missing.items() if cell.seed < 3} == {
        ("js_blend", "gda_alpha1")
    }
    assert seconds(records) == before
    assert comparable(records.folder).equals(comparable(at_once.folder))
    assert run_status(records.folder).missing == 0
    assert panel(load_table(records.folder)).origin.study_hash == load_study("larger.toml").hash


def test_a_grown_folder_is_resumed_like_any_other(records, at_once):
    compact(records)
    for number in range(2):
        run("larger.toml", records, StudyShard(number, 2))
    assert comparable(records.folder).equals(comparable(at_once.folder))
    before = stamps(records.folder)
    assert not run("larger.toml", records).missing
    assert stamps(records.folder) == before


def test_growing_twice(records, at_once):
    edit("larger.toml", ', "gda_alpha1"', "", to="middle.toml")
    run("middle.toml", records)
    run("larger.toml", records)
    assert comparable(records.folder).equals(comparable(at_once.folder))


def test_a_file_of_the_former_study_that_comes_late_costs_nothing(records, at_once):
    late = records.loose()[0]
    content = late.read_bytes()
    run("larger.toml", records)
    late.write_bytes(content)
    run("larger.toml", records)
    assert comparable(records.folder).equals(comparable(at_once.folder))


def test_a_folder_does_not_shrink_or_change(records):
    run("larger.toml", records)
    before = stamps(records.folder)
    edit("larger.toml", '"gda_alpha1"', '{use = "js_blend", as = "gda_alpha1"}', to="changed.toml")
    for study in ("small.toml", "changed.toml"):
        with pytest.raises(StudyError, match="cells and methods may only be added"):
            run(study, records)
    assert stamps(records.folder) == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"ncm", ', "", "which lacks the method ncm; cells .* Add --method ncm to the command, or restore the"),
        (', "ncm", "loo_blend"', "", "the methods ncm, loo_blend; .* Add --method ncm --method loo_blend to"),
        ('"ncm"', '{use = "js_blend", as = "ncm"}', r"changes the method ncm \(was ncm, is js_blend\); .* Restore"),
        ("[0, 1, 2]", "[0, 2]", "lacks 4 cells, such as sim-satellite/.*, 1 shots, seed 1; .* Restore the"),
        ("shots = [1, 2]", "grid = [{shots = [1]}, {shots = [2], methods = ['ncm']}]", "has fewer methods in 6 cells"),
        ('"small"', '"small"\ndtype = "float64"', "which has dtype float64 and not float32"),
        ('"small"', '"other"', "this is 'other' with hash .*, which is another one"),
    ],
)
def test_a_refusal_names_what_is_lacking(records, old, new, words):
    edit("small.toml", old, new, to="lacking.toml")
    with pytest.raises(StudyError, match=words):
        records.claim(load_study("lacking.toml"), [], {})


def test_status_counts_what_the_study_file_has_grown(records):
    larger = load_study("larger.toml")
    whole, besides = with_recorded_methods(records.folder, larger)
    found = run_status(records.folder, whole)
    assert (besides, found.total, found.done, found.missing) == ([], 16, 0, 16)
    assert found.methods["ncm"] == {"ok": 12}
    run("larger.toml", records)
    found = run_status(records.folder, larger)
    assert (found.total, found.done, found.missing) == (16, 16, 0)
    assert count_done(records.folder, larger) == (16, 16)


def test_status_of_a_folder_that_holds_another_study(folder):
    records = Records(folder / "records")
    records.claim(load_study("small.toml"), [], {})
    edit("small.toml", "seeds = [0, 1, 2]", "seeds = [3]", to="other.toml")
    with pytest.raises(StudyError, match=f"lacks 12 cells.* type `kshot status {records.folder}`"):
        with_recorded_methods(records.folder, load_study("other.toml"))
