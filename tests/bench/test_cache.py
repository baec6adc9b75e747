"""How the cache behaves: what an edit computes, what is shared, what damage costs."""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from sklearn.metrics import log_loss

import kshot
from folders import comparable, edit, fill, missing, table
from kshot.bench.query import query
from kshot.bench.record import SECONDS
from kshot.bench.records import Records
from kshot.bench.run import Shard, Workers, missing_tasks
from kshot.bench.study import load_study
from kshot.data.features import load_features
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from kshot.errors import KshotError, StudyError
from kshot.extend import Answers, Metric
from kshot.methods import registry
from kshot.stats.answers import RELATIVE_ERROR

OWN = """
from kshot.methods.ncm import NCM
from weights import FACTOR

class Half(NCM):
    def _fit(self, task):
        super()._fit(task)
        self.coef_ = self.coef_ * FACTOR
"""
FAILS = """
from kshot.methods.ncm import NCM

class Mine(NCM):
    def _fit(self, task):
        {}
"""


def lacking(study, records, features="features", **how):
    """How many records a study still has to compute."""
    asked = query(load_study(study) if isinstance(study, str | Path) else study, Store(features))
    return sum(len(task.wanted) for task in missing_tasks(asked, asked.cells, records, **how))


# The small study has 12 cells of three methods; what an edit computes.
EDITS = {
    "nothing": ("", "", 0),
    "renamed": ('"small"', '"other"', 0),
    "a seed more": ("[0, 1, 2]", "[0, 1, 2, 3]", 12),
    "a K more": ("[1, 2]", "[1, 2, 3]", 18),
    "a method more": ('"ncm"', '"ncm", "gda_alpha1"', 12),
    "a method fewer": ('"ncm", ', "", 0),
    "a dataset fewer": (', "sim-pets"', "", 0),
    "a dataset more": ('"sim-pets"', '"sim-pets", "sim-aircraft"', 18),
    "a method renamed": ('"ncm"', '{ use = "ncm", as = "means" }', 0),
    "a profile more": ("seeds", 'profiles = ["balanced", "missing"]\nseeds', 36),
    "another precision": ("seeds", 'dtype = "float64"\nseeds', 36),
    "another rule for thin pools": ("seeds", "least_left = 1\nseeds", 0),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edited_study_computes_what_is_new_and_loses_nothing(records, folder, case):
    old, new, computed = EDITS[case]
    before = records.keys()
    edit("small.toml", old, new, to="edited.toml")
    assert lacking("edited.toml", records) == computed
    fill(load_study("edited.toml"), folder / "features", records)
    assert before <= records.keys()
    assert lacking("edited.toml", records) == lacking("small.toml", records) == 0


def test_two_studies_in_one_folder_share_what_they_share_and_have_a_query_each(records, folder):
    edit("small.toml", '"small"', '"other"', to="other.toml")
    edit("other.toml", '"ncm"', '"ncm", "clap"')
    fill(load_study("other.toml"), folder / "features", records)
    assert records.names() == ["other", "small"]
    assert len(records.keys()) == 36 + 12
    with pytest.raises(StudyError, match=r"holds records of other, small. Name one"):
        kshot.load_records(records.folder)
    assert set(kshot.load_records(records.folder, "small").panel.methods) == {"zero_shot", "ncm", "loo_blend"}
    assert "clap" in kshot.load_records(records.folder, "other").panel.methods


@pytest.fixture
def own(folder, records, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "own_heads.py").write_text(OWN)
    (folder / "weights.py").write_text("FACTOR = 1.0\n")

    def run():
        # As in a new session.
        for name in ("own_heads", "weights"):
            sys.modules.pop(name, None)
        return kshot.run("small.toml", heads="own_heads:Half", workers=1)

    return run


def accuracies(results, method):
    rows = results.records.to_pylist()
    return {(r["dataset"], r["shots"], r["seed"]): r["accuracy"] for r in rows if r["method"] == method}


def test_an_edited_head_is_computed_again_and_an_undone_edit_is_hit(own, folder, caplog):
    caplog.set_level("INFO")
    first = own()
    half, ncm = (accuracies(first, name) for name in ("own_heads:Half", "ncm"))
    assert half == ncm
    (folder / "weights.py").write_text("# a comment\nFACTOR = 1.0\n")
    caplog.clear()
    own()
    assert "48 records there, 0 to compute" in caplog.text
    (folder / "weights.py").write_text("FACTOR = 0.0\n")
    caplog.clear()
    changed = own()
    assert "36 records there, 12 to compute" in caplog.text
    assert accuracies(changed, "own_heads:Half") != half
    assert accuracies(changed, "ncm") == ncm
    # The caption moves with the head: other inputs, other code.
    assert changed.panel.origin.inputs != first.panel.origin.inputs
    assert changed.panel.origin.code != first.panel.origin.code
    assert changed.panel.origin.code["own_heads:Half"][:8] in changed.leaderboard().caption
    (folder / "weights.py").write_text("FACTOR = 1.0\n")
    caplog.clear()
    again = own()
    assert "0 to compute" in caplog.text
    assert again.panel.origin.inputs == first.panel.origin.inputs


def test_features_encoded_again_have_other_keys_and_the_old_ones_are_hit_when_they_are_back(records, folder):
    before = query(load_study("small.toml"), Store("features")).keys()
    shutil.copytree("features", "kept")
    write(replace(WORLDS["sim-pets"], within=0.7), Store("features"))
    assert lacking("small.toml", records) == 18
    write(WORLDS["sim-pets"], Store("features"))
    assert query(load_study("small.toml"), Store("features")).keys() == before
    assert lacking("small.toml", records) == 0


def test_a_method_that_fails_counts_as_done_until_it_is_retried(folder, records, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    module = folder / "failing_heads.py"
    module.write_text(FAILS.format('raise RuntimeError("not today")'))

    def run(**how):
        return kshot.run("small.toml", heads="failing_heads:Mine", workers=1, **how)

    results = run()
    assert results.failures() == ["failing_heads:Mine failed in 12 cells: RuntimeError: not today"]
    failed = results.records.filter(pc.field("status") == "failed").to_pylist()
    assert "failing_heads.py" in failed[0]["traceback"]
    study = load_study("small.toml").with_methods(["failing_heads:Mine"])
    assert (lacking(study, records), lacking(study, records, retry=True)) == (0, 12)
    module.write_text(FAILS.format("super()._fit(task)"))
    assert lacking(study, records) == 12, "mended code has keys of its own"
    mended = run()
    assert accuracies(mended, "failing_heads:Mine") == accuracies(mended, "ncm")


def test_failed_rows_give_way_to_good_ones(folder, records, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("KSHOT_TEST_FAILS", "1")
    body = "import os\n        assert not os.environ.get('KSHOT_TEST_FAILS')\n        super()._fit(task)"
    (folder / "sometimes.py").write_text(FAILS.format(body))
    assert kshot.run("small.toml", heads="sometimes:Mine", workers=1).failures()
    monkeypatch.delenv("KSHOT_TEST_FAILS")
    assert kshot.run("small.toml", heads="sometimes:Mine", workers=1).failures()
    mended = kshot.run("small.toml", heads="sometimes:Mine", workers=1, retry=True)
    assert not mended.failures()
    assert accuracies(mended, "sometimes:Mine") == accuracies(mended, "ncm")


def test_a_damaged_file_is_named_counts_as_missing_and_is_computed_again(records, folder, caplog):
    whole = comparable(records.folder)
    [path] = records.folder.glob("*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    fresh = Records(records.folder)
    assert not fresh.keys()
    assert f"{path} is damaged and counts as missing" in caplog.text
    fill(load_study("small.toml"), folder / "features", fresh)
    assert comparable(records.folder).equals(whole)
    assert path.exists(), "nobody deletes what he cannot read"


def test_a_damaged_query_is_asked_again(records, folder):
    [path] = (records.folder / "queries").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StudyError, match="unknown study"):
        Records(records.folder).saved("small")
    fill(load_study("small.toml"), folder / "features", records)
    assert records.saved("small").keys() == records.keys()


def test_a_file_of_another_name_or_in_the_making_is_not_read(records):
    before = comparable(records.folder)
    (records.folder / ".tmp-elsewhere-1-abc.parquet").write_bytes(b"PAR1 half a fi")
    shutil.copy(next(records.folder.glob("*.parquet")), records.folder / f"{'0' * 32}.parquet")
    assert comparable(records.folder).equals(before)


def test_joining_files_loses_nothing_among_readers_writers_and_other_joiners(records):
    before, rows = comparable(records.folder), records.table(records.keys(), _columns())
    other = Records(records.folder.parent / "many")
    other.save(query(load_study("small.toml"), Store("features")))
    for number in range(len(rows)):
        other.add(rows.slice(number, 1))
    assert len(list(other.folder.glob("*.parquet"))) == len(rows)

    def act(kind):
        fresh = Records(other.folder)
        return fresh.compact() if kind else comparable(other.folder).equals(before)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(act, [True, False] * 6))
    assert all(done[1::2])
    assert sum(done[::2]) >= len(rows)
    other.compact()
    assert len(list(other.folder.glob("*.parquet"))) == 1
    assert comparable(other.folder).equals(before)


def _columns():
    from kshot.bench.record import schema

    return schema().names


def test_only_drop_removes_rows(records):
    keys = records.keys()
    gone = set(sorted(keys)[:5])
    assert records.drop(gone) == 5
    assert records.keys() == keys - gone
    assert missing(records.folder) == 5


def test_rows_without_answers_give_way_to_rows_with_them(folder, computed):
    shutil.copytree(computed / "features", folder / "features")
    edit("small.toml", "name", "answers = false\nname", to="without.toml")
    records = Records(folder / "none")
    fill(load_study("without.toml"), folder / "features", records)
    results = kshot.load_records(records.folder)
    with pytest.raises(StudyError, match="keep no answers, so that NLL is unknown"):
        results.by("nll").leaderboard()
    assert not results.table("metrics").rows
    assert lacking("without.toml", records) == 0
    # Undefined ones have none to keep.
    assert lacking("small.toml", records) == 30
    fill(load_study("small.toml"), folder / "features", records)
    assert len(records.keys()) == 36
    assert kshot.load_records(records.folder).by("nll").leaderboard().rows


def test_answers_are_those_of_the_head(records, folder):
    found = {}
    share = Metric("share", "share", lambda answers: found.setdefault(len(found), answers) and 0.0)
    panel = kshot.load_records(records.folder).by("nll").measured
    stored = load_features("sim-pets", "simulated", features=folder / "features")
    cell = (panel.dataset == "sim-pets") & (panel.shots == 2) & (panel.seed == 1)
    for name in ("zero_shot", "ncm"):
        head = stored.episode(2, 1).fit(registry.create(name))
        p = head.predict_proba(stored.test.X).astype(float)
        expected = log_loss(stored.test.y, p / p.sum(axis=1, keepdims=True))
        assert panel.column(name)[cell] == pytest.approx(expected, rel=RELATIVE_ERROR)
    rows = table(records.folder).filter((pc.field("dataset") == "sim-pets") & (pc.field("method") == "ncm"))
    rows = rows.filter((pc.field("shots") == 2) & (pc.field("seed") == 1))
    records.answers(rows, {"share": share.value})
    [answers] = found.values()
    assert isinstance(answers, Answers)
    assert np.array_equal(answers.truth, stored.test.y)
    assert np.array_equal(answers.predicted, stored.episode(2, 1).fit(registry.create("ncm")).predict(stored.test.X))
    assert np.mean(answers.hits) == rows["accuracy"][0].as_py()


def test_records_are_the_same_in_processes_in_order_and_in_shards(records, folder):
    whole, study = comparable(records.folder), load_study("small.toml")
    for name, workers, shards in (("processes", 2, 1), ("shards", 1, 3)):
        other = Records(folder / name)
        for index in range(shards):
            fill(study, folder / "features", other, workers, shard=Shard(index, shards))
        assert comparable(other.folder).equals(whole)


def test_shards_keep_their_share_when_they_are_resumed(records, folder, caplog):
    caplog.set_level("INFO")
    study, other = load_study("small.toml"), Records(folder / "other")
    for _ in range(2):
        for index in range(3):
            fill(study, folder / "features", other, shard=Shard(index, 3))
    lines = [record.getMessage() for record in caplog.records if "to compute" in record.getMessage()]
    assert [line.split(" to compute")[0].split()[-1] for line in lines] == ["12", "12", "12", "0", "0", "0"]


def test_a_second_run_writes_nothing(records, folder):
    before = {path: path.stat().st_mtime_ns for path in records.folder.rglob("*.parquet")}
    fill(load_study("small.toml"), folder / "features", records)
    assert {path: path.stat().st_mtime_ns for path in records.folder.rglob("*.parquet")} == before


def test_features_written_again_during_a_run_are_refused(folder, records):
    from kshot.bench.run import fill as fill_query

    asked, other = query(load_study("small.toml"), Store("features")), Records(folder / "other")
    write(replace(WORLDS["sim-pets"], between=0.1), Store("features"))
    with pytest.raises(KshotError, match="was written again after this run had begun"):
        fill_query(asked, folder / "features", other, Workers(1))


def test_reports_need_no_features_and_show_what_is_unfinished(records, folder):
    shutil.rmtree("features")
    assert not kshot.load_records(records.folder).unfinished
    gone = set(sorted(records.keys())[:4])
    records.drop(gone)
    results = kshot.load_records(records.folder)
    assert "UNFINISHED, 4 of 36 records to compute, 2 of 2 pairs" in results.unfinished
    assert sum(row[-1] == "not computed" for row in results.missing) == 4


def test_every_row_names_what_made_it(records):
    rows = table(records.folder).to_pylist()
    assert {row["protocol"] for row in rows} == {"official"}
    assert all('"kshot"' in row["made_by"] and '"numpy"' in row["made_by"] for row in rows)
    ok = [row for row in rows if row["status"] == "ok"]
    for row in ok:
        hits = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: row["n_test"]]
        assert hits.sum() == row["n_correct"] == round(row["accuracy"] * row["n_test"])
    assert {(row["method"], row["shots"]) for row in rows if row["status"] == "undefined"} == {("loo_blend", 1)}
    assert all(row[name] >= 0 for row in rows for name in SECONDS)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(records, folder):
    records.folder.chmod(0o500)
    with pytest.raises(KshotError, match="no permission to write"):
        records.drop(records.keys())
    records.folder.chmod(0o700)
