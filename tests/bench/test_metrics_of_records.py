"""Metrics of a run: from the answers it kept, one written later too, without computing anything again."""

import numpy as np
import pytest

from kshot import load_records
from kshot.errors import StudyError
from kshot.extend import Answers, Metric

OWN = """
import numpy as np
from kshot.extend import Metric
TIMID = Metric("timid", "timid share", lambda answers: float(np.mean(answers.confidence < 0.5)))
NO_METRIC = 3
"""


def test_a_metric_written_afterwards_needs_no_run(records):
    before = {path: path.stat().st_mtime_ns for path in records.folder.rglob("*.parquet")}

    def gap(answers: Answers) -> float:
        return float(np.mean(answers.true_surprise - answers.top_surprise))

    late = load_records(records.folder).by(Metric("regret", "regret", gap))
    assert late.leaderboard().title == "Leaderboard: mean regret by shots"
    assert late.paired("ncm", "zero_shot").n > 0
    assert {path: path.stat().st_mtime_ns for path in records.folder.rglob("*.parquet")} == before


def test_the_best_is_first_whichever_way_a_metric_counts(records):
    found = load_records(records.folder)
    for metric in ("accuracy", "nll", "ece", "worst_decile"):
        board = found.by(metric).leaderboard()
        means = [float(row[-2]) for row in board.rows if np.isfinite(float(row[-2]))]
        assert means == sorted(means, reverse=metric in ("accuracy", "worst_decile"))


def test_every_metric_stands_in_one_table_and_in_its_csv(records):
    table = load_records(records.folder).table("metrics")
    header = table.csv().splitlines()[0]
    for name in ("accuracy", "nll", "brier_score", "ece", "worst_decile_accuracy"):
        assert name in header.split(",")
    accuracy = load_records(records.folder).leaderboard()
    assert [row[1].mean for row in table.rows] == [row[-2].mean for row in accuracy.rows]


def test_a_metric_of_ones_own_by_its_name(records, monkeypatch):
    (records.folder.parent / "own_metrics.py").write_text(OWN)
    monkeypatch.syspath_prepend(records.folder.parent)
    found = load_records(records.folder)
    assert "timid share" in found.by("own_metrics:TIMID").leaderboard().title
    with pytest.raises(StudyError, match=r"is a int, not a kshot\.extend\.Metric"):
        found.by("own_metrics:NO_METRIC")
