"""A head with a mistake is marked wherever its results are shown, and a run of an unfinished class stops."""

import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import kshot
from kshot.bench.leak_check import leak_check
from kshot.errors import StudyError
from kshot.report.notes import LEAKY

MARK = LEAKY.strip()
HONEST, DROP_OUT, BATCH = (f"head_mistakes:{name}" for name in ("Honest", "DropOut", "BatchStatistics"))


@pytest.fixture
def own(folder, monkeypatch):
    """The small study, with mistakes and an honest head as a module beside it; each look for leaks is counted."""
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop("head_mistakes", None)
    text = Path(__file__).with_name("mistakes.py").read_text()
    (folder / "head_mistakes.py").write_text(f"{text}\n\nclass Honest(NCM):\n    pass\n")
    looks = []

    def counted(study, specs, store, hits):
        looks.append((specs[0].name, sorted({cell.dataset for cell, _ in hits})))
        return leak_check(study, specs, store, hits)

    monkeypatch.setattr("kshot.bench.leak_check.leak_check", counted)
    return looks


def run(*heads, **limits):
    return kshot.run("small.toml", heads=heads, workers=1, **limits)


def marked(results):
    return {str(name).removesuffix(LEAKY) for name, *_ in results.leaderboard().rows if str(name).endswith(LEAKY)}


@pytest.mark.parametrize(("head", "why"), [(DROP_OUT, "computed again"), (BATCH, "it uses statistics over them")])
def test_a_mistake_is_marked_now_and_later(own, head, why, tmp_path):
    results = run(head, HONEST)
    for found in (results, kshot.load_records("records")):
        (name,) = marked(found)
        assert head in name
        assert list(found.leaks) == [head]
        board = found.leaderboard()
        assert board.caption.count(MARK) == 1
        assert why in board.caption
        written = found.report(tmp_path / "report")
        for path in (written.page, written.page.with_suffix(".md")):
            text = path.read_text()
            assert MARK in text, path
            assert "not to be trusted" in text, path
    assert marked(results.where(method=HONEST)) == set()
    assert MARK not in results.where(method=HONEST).leaderboard().caption


def test_an_honest_head_is_not_marked(own):
    for found in (run(HONEST), kshot.load_records("records")):
        assert not found.leaks
        assert MARK not in repr(found)
    assert own == [(HONEST, ["sim-pets", "sim-satellite"])]


def test_nobody_looks_twice_and_what_was_found_stays(own):
    first = run(DROP_OUT, shots=[1])
    assert [name for name, _ in own] == [DROP_OUT]
    assert run(DROP_OUT, shots=[1, 2]).leaks == first.leaks
    run()
    assert run(DROP_OUT).leaks == first.leaks
    assert len(own) == 1


def test_other_datasets_are_looked_at_and_other_code_again(own, folder):
    kshot.run("small.toml", heads=[HONEST], on="sim-pets/simulated/dataset", workers=1)
    run(HONEST)
    assert own == [(HONEST, ["sim-pets"]), (HONEST, ["sim-satellite"])]
    (folder / "head_mistakes.py").write_text((folder / "head_mistakes.py").read_text() + "    # edited\n    x = 1\n")
    sys.modules.pop("head_mistakes", None)
    run(HONEST)
    assert own[2:] == [(HONEST, ["sim-pets", "sim-satellite"])]


UNFINISHED = {
    "Weightless": ("call self._set_linear", "def _fit(self, task):\n        pass"),
    "Curious": ("does not declare `test`", "def _fit(self, task):\n        return task.test"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", UNFINISHED)
def test_a_run_stops_at_the_first_cell_of_an_unfinished_class(folder, monkeypatch, name, workers):
    words, code = UNFINISHED[name]
    monkeypatch.syspath_prepend(folder)
    # Workers outlive a test: another module each time.
    module = f"{name.lower()}_{workers}"
    (folder / f"{module}.py").write_text(f"from kshot.methods.ncm import NCM\n\n\nclass {name}(NCM):\n    {code}\n")
    with pytest.raises(StudyError, match=rf"(?s){module}\.py:[56].*{words}"):
        kshot.run("small.toml", heads=[f"{module}:{name}"], workers=workers)
    there = kshot.load_records("records").records
    failed = there.filter(pc.field("status") == "failed").num_rows
    assert 1 <= failed <= 2 * workers
    assert there.num_rows == 4 * failed, "the other heads of the cell are kept"


def test_of_shards_the_last_one_looks(own):
    run(BATCH, shard=(0, 2))
    assert own == []
    assert list(run(BATCH, shard=(1, 2)).leaks) == [BATCH]


def test_methods_of_kshot_are_not_looked_at(own):
    assert run().leaks == {}
    assert own == []
