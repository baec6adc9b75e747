"""The table of cheats on the protocol page: which are impossible, which are detected, which remain."""

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from folders import fill
from kshot.bench import cell as running
from kshot.bench.detector import detect, differences
from kshot.bench.records import Records, load_table
from kshot.bench.study import Cell, parse_study
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.methods import registry

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
ROW = re.compile(r"^\| `(\w+)` \|.*\| (impossible|detected|remains) \|$", re.M)
CELLS = [Cell("sim-satellite", "simulated", "dataset", 2, seed) for seed in (0, 1)]


def study_of(*methods):
    axes = {"datasets": ["sim-satellite"], "backbones": ["simulated"], "tiers": ["dataset"]}
    return parse_study({"name": "s", **axes, "shots": [2], "seeds": [0, 1], "methods": list(methods)}, "s.toml")


@pytest.fixture
def court(tmp_path, monkeypatch):
    """A folder with features and the cheats; runs one of them in both cells and tells what came of it."""
    monkeypatch.chdir(tmp_path)
    write(WORLDS["sim-satellite"], Store(tmp_path / "features"))
    shutil.copy(Path(__file__).with_name("cheats.py"), tmp_path / "court_cheats.py")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(running, "checked_predictions", running.checked_predictions)
    yield tmp_path
    sys.modules.pop("court_cheats", None)


def records_of(folder, *methods):
    """All in one process, as a worker does it: state and patches have every chance."""
    study, records = study_of(*methods), Records(folder / "records")
    stratum = load_stratum(Store(folder / "features"), "sim-satellite", "simulated")
    prior = load_prior(Store(folder / "features"), "sim-satellite", "simulated", "dataset")
    for cell in CELLS:
        facts, rows = running.run_cell(cell, study.cells()[cell], stratum, prior)
        records.write(study, facts, rows)
    last = [row for row in load_table(records.folder).to_pylist() if row["seed"] == 1]
    return study, {row["method"]: row for row in last}


def outcome(folder, cheat):
    name = f"court_cheats:{cheat}"
    # Before the cheat has run: it may spoil what runs after it in the same process.
    _, honest = records_of(folder, "ncm")
    study, rows = records_of(folder, "ncm", name)
    mine = rows[name]
    if mine["status"] == "failed" or mine["hits"] == honest["ncm"]["hits"]:
        return "impossible"
    if mine["status"] == "undefined":
        # A method that exists in fewer cells has no mean and is told; tests of report and judge hold that.
        return "detected"
    spec = study.methods()[name]
    found, _ = differences(study, spec, CELLS[1], mine, folder / "features", folder / "records")
    return "detected" if found else "remains"


def test_the_page_lists_seventeen():
    assert len(dict(ROW.findall(PAGE.read_text()))) == 17


@pytest.mark.parametrize(("cheat", "told"), ROW.findall(PAGE.read_text()))
def test_the_page_tells_what_happens(court, cheat, told):
    if cheat == "KnowsTheLabels":
        test = load_stratum(Store(court / "features"), "sim-satellite", "simulated").test
        order = np.argsort(test.X[:, 0])
        np.save(court / "answers.npy", np.stack([test.X[order, 0], test.y[order]], axis=1).astype(np.float64))
    assert outcome(court, cheat) == told


@pytest.mark.ci
def test_an_honest_outsider_raises_no_alarm_and_files_are_out_of_reach(court):
    (court / "honest.py").write_text("from kshot.methods.clap import CLAP\nclass Honest(CLAP):\n    pass\n")
    study, _ = records_of(court, "honest:Honest")
    (found,) = detect(study, list(study.methods().values()), court / "features", court / "records")
    assert (found.cells, found.all_cells, found.differences) == (1, 2, ())
    assert "1 of its 2 cell(s)" in str(found)
    assert found.isolated or sys.platform != "linux"
    assert "the same predictions" in str(found)


@pytest.mark.slow
def test_no_registered_method_raises_an_alarm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, records = study_of(*registry.BUILTIN), Records(tmp_path / "records")
    fill(study, tmp_path / "features", records)
    found = detect(study, list(study.methods().values()), tmp_path / "features", tmp_path / "records")
    assert {one.method: one.differences for one in found if one.differences} == {}
    assert sum(one.cells for one in found) >= len(registry.BUILTIN) - 6


def test_an_outsider_starts_anew_in_every_cell(court):
    first, second = (type(registry.create_afresh("court_cheats:Remembers")) for _ in range(2))
    assert first is not second
    first.seen.append(1)  # pyright: ignore[reportAttributeAccessIssue]
    assert not second.seen  # pyright: ignore[reportAttributeAccessIssue]
