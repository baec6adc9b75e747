"""The table of docs/protocol.md: which mistakes of a head are prevented, which the leak check finds, which remain."""

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from kshot.bench.cell import run_cell
from kshot.bench.leak_check import leak_check
from kshot.bench.study import Cell, MethodSpec, parse_study
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.methods import registry
from kshot.methods.ncm import NCM

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
ROWS = re.findall(r"^\| `(\w+)` \|.*\| (prevented|found|shown|remains) \|$", PAGE.read_text(), re.M)
PLACE = ("sim-satellite", "simulated")
CELLS = [Cell(*PLACE, "dataset", 2, seed) for seed in (0, 1)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Features in an empty folder, with the mistakes as a module beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copy(Path(__file__).with_name("mistakes.py"), tmp_path / "head_mistakes.py")
    store = Store(tmp_path / "features")
    write(WORLDS["sim-satellite"], store)
    yield store
    sys.modules.pop("head_mistakes", None)


def study_of(*uses):
    axes = {"datasets": [PLACE[0]], "backbones": [PLACE[1]], "tiers": ["dataset"]}
    return parse_study({"name": "s", **axes, "shots": [2], "seeds": [0, 1], "methods": list(uses)}, "s.toml")


def run_all(study, store):
    """All records by cell and name, computed in this process: state has every chance."""
    stratum, prior = load_stratum(store, *PLACE), load_prior(store, *PLACE, "dataset")
    names = list(study.methods())
    rows = {cell: run_cell(cell, study.cells()[cell], stratum, prior)[1] for cell in CELLS}
    return {(cell, name): record for cell in CELLS for name, record in zip(names, rows[cell], strict=True)}


def findings(study, store, records):
    done = {place: record.hits for place, record in records.items() if record.status == "ok"}
    return leak_check(study, list(study.methods().values()), store, done)


def outcome(mistake, store):
    study = study_of("ncm", f"head_mistakes:{mistake}")
    records = run_all(study, store)
    mine = records[CELLS[1], f"head_mistakes:{mistake}"]
    if mine.status == "undefined":
        return "shown"
    if mine.status == "failed" or mine.hits == records[CELLS[1], "ncm"].hits:
        return "prevented"
    found = findings(study, store, records)
    assert {finding.method for finding in found} <= {f"head_mistakes:{mistake}"}, "NCM is honest"
    return "found" if found else "remains"


@pytest.mark.parametrize(("mistake", "said"), ROWS)
def test_the_page_says_what_happens(mistake, said, store, tmp_path):
    test = load_stratum(store, *PLACE).test
    if mistake == "LabelsInModule":
        np.save(tmp_path / "labels.npy", test.y)
    if mistake == "LabelsInFile":
        order = np.argsort(test.X[:, 0])
        np.save(tmp_path / "table.npy", np.stack([test.X[order, 0], test.y[order]], axis=1).astype(np.float64))
    assert outcome(mistake, store) == said


def test_every_mistake_has_a_row(store):
    import head_mistakes  # pyright: ignore[reportMissingImports]

    heads = {name for name, value in vars(head_mistakes).items() if isinstance(value, type) and issubclass(value, NCM)}
    assert {name for name, _ in ROWS} == heads - {"NCM"}


def test_a_head_of_this_session_that_holds_the_labels_is_named(store):
    class Holder(NCM):
        pass

    Holder.answers = [f"class {label}" for label in load_stratum(store, *PLACE).test.y]
    spec = MethodSpec("holder", "__main__:Holder", head=Holder())
    honest = MethodSpec("ncm", "ncm")
    stratum, prior = load_stratum(store, *PLACE), load_prior(store, *PLACE, "dataset")
    records = run_cell(CELLS[0], [spec, honest], stratum, prior)[1]
    hits = {(CELLS[0], name): record.hits for name, record in zip(("holder", "ncm"), records, strict=True)}
    (finding,) = leak_check(study_of("ncm"), [spec, honest], store, hits)
    assert str(finding) == "holder in sim-satellite/simulated/dataset, 2 shots, seed 0: answers holds the test labels"


@pytest.mark.slow
def test_no_registered_method_raises_an_alarm(store):
    study = study_of(*registry.BUILTIN)
    records = run_all(study, store)
    assert findings(study, store, records) == ()
    assert sum(record.status == "ok" for record in records.values()) >= 2 * (len(registry.BUILTIN) - 6)
