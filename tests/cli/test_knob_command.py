from pathlib import Path

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


def test_a_knob_by_the_start_of_its_name(kshot):
    kshot("simulate")
    arguments = ("--dataset", "sim-satellite", "--shots", "2", "--seeds", "2")
    out = kshot("knob", "gda", *arguments).stdout
    assert "gda_alpha1" in out
    line = next(line for line in out.splitlines() if "sim-satellite" in line)
    *_, chosen, _, oracle, regret, _, by_folds = [cell.strip() for cell in line.split("│")[1:-1]]
    assert abs(float(oracle) - float(chosen) - float(regret)) < 0.11
    assert 0 <= float(by_folds) <= float(oracle)


def test_somebodys_own_knob(kshot):
    kshot("simulate")
    Path("mine.py").write_text(OWN)
    out = kshot("knob", "mine:Scaled", "--dataset", "sim-satellite", "--shots", "2", "--seeds", "1").stdout
    line = next(line for line in out.splitlines() if "sim-satellite" in line)
    assert [cell.strip() for cell in line.split("│")][4] == "1"


def test_mistakes_are_answered(kshot):
    assert "no knob; those with one: loo_blend" in kshot("knob", "clap").stderr
    assert "Known: gda_alpha1" in kshot("knob", "nonsense").stderr
    assert "Did you mean cifar10" in kshot("knob", "gda", "--dataset", "cifar").stderr
