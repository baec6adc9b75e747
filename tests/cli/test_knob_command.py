import re
from pathlib import Path

import numpy as np

OWN = """
import numpy as np
from kshot import ZeroShot

class Scaled(ZeroShot):
    def knob_name(self):
        return "scale"
    def knob_grid(self):
        return [-1.0, 1.0]
    def knob_curve(self, task, queries):
        scores = queries.X @ task.text.T
        return np.array([np.mean((s * scores).argmax(axis=1) == queries.y) for s in self.knob_grid()])
"""


def cells_of(line):
    return re.split(r"\s{2,}", line.strip())


def test_a_knob_by_the_start_of_its_name(ran):
    arguments = ("--dataset", "sim-satellite", "--shots", "2", "--seeds", "2")
    out = ran("features", "knob", "gda", *arguments).stdout
    assert "gda_alpha1" in out
    line = next(line for line in out.splitlines() if "sim-satellite" in line)
    *_, chosen, _, oracle, regret, _, by_folds = cells_of(line)
    assert abs(float(oracle) - float(chosen) - float(regret)) < 0.11
    assert 0 <= float(by_folds) <= float(oracle)


def test_several_datasets_are_averaged_and_ties_are_starred(kshot):
    out = kshot("features", "knob", "gda", "--shots", "2", "--shots", "4", "--seeds", "1").stdout
    lines = [cells_of(line) for line in out.splitlines() if " lite0 " in line]
    by_dataset, averages = [c for c in lines if len(c) == 10], [c for c in lines if len(c) == 5]
    assert [(c[1], c[2]) for c in averages] == [("2", "7"), ("4", "7")]
    for shots, average in zip("24", averages, strict=True):
        here = [cells for cells in by_dataset if cells[2] == shots]
        # A fold of two shots learns from one, of which GDA's covariance knows nothing.
        assert all(cells[8].endswith("*") == (shots == "2") for cells in here)
        for column, shown in ((7, average[3]), (9, average[4])):
            regrets = [float(cells[column]) for cells in here]
            assert abs(sum(regrets) / 7 - float(shown.split()[0])) < 0.11
            assert "[" in shown
    assert "the first was taken" in out


def test_somebodys_own_knob(ran):
    Path("mine.py").write_text(OWN)
    out = ran("features", "knob", "mine:Scaled", "--dataset", "sim-satellite", "--shots", "2", "--seeds", "1").stdout
    line = next(line for line in out.splitlines() if "sim-satellite" in line)
    assert cells_of(line)[3] == "1"


def test_mistakes_are_answered(kshot):
    assert "no knob; those with one: loo_blend" in kshot("features", "knob", "clap").stderr
    assert re.search(r"Known: .*\bgda_alpha1, ", kshot("features", "knob", "nonsense").stderr)
    assert "Did you mean cifar10" in kshot("features", "knob", "gda", "--dataset", "cifar").stderr


def test_strata_without_the_tier_are_named_and_left_out(ran):
    from kshot.data.store import Store

    store, X = Store("features"), np.eye(4, dtype=np.float32)
    store.write_text("bare", "enc", "photo", X, None, list("abcd"))
    store.write_images("bare", "enc", "all", X, np.arange(4), list("abcd"), list("abcd"))
    done = ran("features", "knob", "gda", "--shots", "2", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert "left out, without tier dataset: bare/enc" in done.stdout
    refused = ran("features", "knob", "gda", "--dataset", "bare")
    assert refused.returncode == 2
    assert "unknown tier 'dataset'" in refused.stderr


def test_shots_that_no_pool_can_give(ran):
    done = ran("features", "knob", "gda", "--shots", "1000")
    assert done.returncode == 2
    assert "no stored dataset has pictures for K = 1000" in done.stderr
    assert ran("features", "knob", "gda", "--shots", "0").returncode == 2
