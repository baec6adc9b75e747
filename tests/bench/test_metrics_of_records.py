"""Metrics of a run: from the answers it kept, one written later too, without computing anything again."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from folders import stamps
from kshot import load_records
from kshot.bench.records import cell_place
from kshot.bench.study import Cell
from kshot.data.features import load_features
from kshot.errors import StudyError
from kshot.extend import Answers, Metric
from kshot.files import replace_table
from kshot.methods import registry
from kshot.stats.answers import RELATIVE_ERROR, answers_table

OWN = """
import numpy as np
from kshot.extend import Metric
TIMID = Metric("timid", "timid share", lambda answers: float(np.mean(answers.confidence < 0.5)))
NO_METRIC = 3
"""


def test_nll_of_a_record_is_that_of_its_head(records, folder):
    found = load_records(records.folder, features=folder / "features").by("nll")
    panel = found.measured
    stored = load_features("sim-pets", "simulated", features=folder / "features")
    cell = (panel.dataset == "sim-pets") & (panel.shots == 2) & (panel.seed == 1)
    for name in ("zero_shot", "ncm"):
        head = stored.episode(2, 1).fit(registry.create(name))
        p = head.predict_proba(stored.test.X).astype(float)
        expected = log_loss(stored.test.y, p / p.sum(axis=1, keepdims=True))
        assert panel.column(name)[cell] == pytest.approx(expected, rel=RELATIVE_ERROR)


def test_a_metric_written_afterwards_needs_no_run(records):
    before = stamps(records.folder)

    def gap(answers: Answers) -> float:
        return float(np.mean(answers.true_surprise - answers.top_surprise))

    late = load_records(records.folder).by(Metric("regret", "regret", gap))
    assert late.leaderboard().title == "Leaderboard: mean regret by shots"
    assert late.paired("ncm", "zero_shot").n > 0
    assert stamps(records.folder) == before


def test_the_best_is_first_whichever_way_a_metric_counts(records):
    found = load_records(records.folder)
    for metric in ("accuracy", "nll", "ece", "worst_decile"):
        board = found.by(metric).leaderboard()
        means = [float(row[-2]) for row in board.rows if np.isfinite(float(row[-2]))]
        assert means == sorted(means, reverse=metric in ("accuracy", "worst_decile"))


def test_every_metric_stands_in_one_table_and_in_its_csv(records):
    table = load_records(records.folder).table("metrics")
    header = table.csv().splitlines()[0]
    for name in ("accuracy (%)", "NLL", "Brier score", "ECE (%)", "worst-decile accuracy (%)"):
        assert name in header
    accuracy = load_records(records.folder).leaderboard()
    assert [row[1].mean for row in table.rows] == [row[-2].mean for row in accuracy.rows]


def test_a_metric_of_ones_own_by_its_name(records, monkeypatch):
    (records.folder.parent / "own_metrics.py").write_text(OWN)
    monkeypatch.syspath_prepend(records.folder.parent)
    found = load_records(records.folder)
    assert "timid share" in found.by("own_metrics:TIMID").leaderboard().title
    with pytest.raises(StudyError, match=r"is a int, not a kshot\.extend\.Metric"):
        found.by("own_metrics:NO_METRIC")


def test_records_without_answers_say_so(records):
    import shutil

    shutil.rmtree(records.folder / "answers")
    found = load_records(records.folder)
    with pytest.raises(StudyError, match="keeps no answers, so that NLL is unknown"):
        found.by("nll").leaderboard()
    assert not found.table("metrics").rows
    assert len(found.leaderboard().rows) == 3


def test_answers_of_another_record_do_not_count(records):
    here, there = (Cell("sim-pets", "simulated", "dataset", 1, seed) for seed in (0, 1))
    replace_table(answers_table(records.answers(there)), records.folder, cell_place(here, "answers"))
    found = load_records(records.folder).by("nll").measured
    cell = (found.dataset == "sim-pets") & (found.shots == 1) & (found.seed == 0)
    assert np.isnan(found.column("ncm")[cell]).all()
