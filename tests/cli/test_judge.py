"""`kshot judge` on methods whose place is known beforehand."""

import re
import tomllib
from pathlib import Path

import pytest

from folders import table
from kshot.bench.heads import method_specs
from kshot.bench.records import Records
from kshot.bench.study import parse_study
from kshot.methods import registry
from kshot.report.questions import five_questions
from kshot.runs import COMPANIONS, judged_study
from kshot.stats.panel import panel
from synthetic_records import synthetic_table

pytestmark = pytest.mark.ci

STUDY = """
name = "tiny"
datasets = ["sim-satellite", "sim-pets"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 4]
seeds = [0]
methods = ["ncm"]
"""
OWN_HEADS = '''
from kshot.methods.base import Classifier
from kshot.methods.blending import RatioKnob, blend
from kshot.types import Choice, MethodInfo


class TextOnly(Classifier):
    """Zero-shot under another name: every difference to zero-shot is nil."""

    @property
    def info(self):
        return MethodInfo(key="text_only", title="Text only", sees=frozenset({"text", "support"}), min_shots=1)

    def _fit(self, task):
        self._set_linear(task.text.copy())


class Half(RatioKnob, Classifier):
    """A ratio nobody chose, with the family's knob: its own oracle is the oracle ratio."""

    @property
    def info(self):
        return MethodInfo(key="half", title="Half", sees=frozenset({"text", "support"}), min_shots=1)

    def _fit(self, task):
        self.selected_ = {"lambda": Choice(0.5, "fixed")}
        self._set_linear(blend(task.means, task.text, 0.5))
'''


@pytest.fixture
def kshot_with_heads(kshot):
    Path("tiny.toml").write_text(STUDY)
    Path("own_heads.py").write_text(OWN_HEADS)
    return kshot


def answers(text):
    return {line.split("  ")[1].strip(): line for line in text.splitlines() if re.match(r"\s+\d (against|how)", line)}


def numbers(text):
    return [float(x.replace("−", "-")) for x in re.findall(r"[+−-]?\d+\.\d+", text)]


def test_a_copy_of_zero_shot_without_a_knob(kshot_with_heads):
    done = kshot_with_heads("judge", "own_heads:TextOnly", "tiny.toml", "--workers", "1")
    assert done.returncode == 0, done.stderr
    found = answers(done.stdout)
    assert set(numbers(found["1 against zero-shot"])) == {0.0}
    assert "no knob declared" in found["2 against its knob's oracle"]
    assert "nothing was fitted" in found["5 how its knob was chosen"]
    page = Path("records/reports/tiny-judge/report.html").read_text()
    assert "2 against its knob" in page


@pytest.mark.slow
def test_a_blend_with_the_family_knob(kshot_with_heads):
    done = kshot_with_heads("judge", "own_heads:Half", "tiny.toml", "--workers", "1")
    found = answers(done.stdout)
    assert numbers(found["2 against its knob's oracle"]) == numbers(found["3 against the oracle ratio"])
    assert "lambda from fixed" in found["5 how its knob was chosen"]
    rows = table("records").to_pylist()
    accuracy = {(r["dataset"], r["shots"], r["method"]): r["accuracy"] for r in rows}
    cells = sorted({key[:2] for key in accuracy})
    for other, question in (("clap", "4 against CLAP"), ("oracle_lambda", "3 against the oracle ratio")):
        differences = [100 * (accuracy[*c, "own_heads:Half"] - accuracy[*c, other]) for c in cells]
        assert numbers(found[question])[0] == pytest.approx(sum(differences) / len(cells), abs=0.006)
    assert " 0 to compute" in kshot_with_heads("judge", "own_heads:Half", "tiny.toml", "--workers", "1").stdout
    assert "has no class 'Nobody'" in kshot_with_heads("judge", "own_heads:Nobody", "tiny.toml").stderr


def test_absent_companions_are_said_not_faked(kshot_with_heads, monkeypatch):
    study = parse_study(tomllib.loads(STUDY), "here")
    monkeypatch.setattr(registry, "names", lambda: ["zero_shot", "oracle_lambda"])
    judged = judged_study(study, method_specs("own_heads:Half"))
    assert list(judged.methods()) == ["zero_shot", "oracle_lambda", "own_heads:Half"]
    found = panel(synthetic_table(methods=("zero_shot", "oracle_lambda", "loo_blend")))
    _, said = five_questions(found, "loo_blend", None)
    assert any("clap is not registered or not in this study" in line for line in said)
    assert any("lambda from support" in line for line in said)


def test_a_known_method_can_be_judged_too():
    study = parse_study(tomllib.loads(STUDY), "here")
    assert sorted(judged_study(study, method_specs("clap")).methods()) == sorted(COMPANIONS)
    assert judged_study(study, method_specs("a.b:C")).name == "tiny-judge"


def test_each_of_several_methods_has_its_table_on_the_features_and_shots_asked_for(kshot_with_heads):
    asked = ("--on", "tuxpaint/lite0/photo", "--shots", "2", "--least-left", "3", "--workers", "1")
    done = kshot_with_heads("judge", "own_heads:TextOnly", "own_heads:Half", "tiny.toml", *asked)
    assert done.returncode == 0, done.stderr
    assert "Text only: the five questions" in done.stdout
    assert "Half: the five questions" in done.stdout
    study, rows = Records("records").saved("tiny-judge").study, table("records").to_pylist()
    assert study.least_left == 3
    assert {(row["dataset"], row["tier"], row["shots"]) for row in rows} == {("tuxpaint", "photo", 2)}
    page = Path("records/reports/tiny-judge/report.html").read_text()
    assert "Text only: 1 against zero-shot" in page
    assert "Half: 1 against zero-shot" in page
    planned = kshot_with_heads("run", "tiny.toml", *asked[:6], "--method", "clap", "--plan").stdout
    assert "records  1 there, 1 missing" in planned, "a study shares the companions' records, and NCM is none"
