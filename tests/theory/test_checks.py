"""The checks pass as they stand, quickly here and in full in the slow run."""

import pytest

from kshot.paper import checks
from kshot.paper.checks.trial import FULL, QUICK, Verdict


@pytest.mark.parametrize("name", checks.NAMES)
def test_quick_check_passes_and_reports_progress(name):
    heard = []
    verdicts = checks.load(name).check(QUICK, heard.append)
    assert [v for v in verdicts if not v.passed] == []
    assert heard == sorted(heard)
    assert heard[-1] == pytest.approx(1)


@pytest.mark.slow
def test_everything_passes_in_full():
    titles = []
    verdicts = checks.verify(FULL, lambda title, done: titles.append(title))
    assert [v for v in verdicts if not v.passed] == []
    assert len(set(titles)) == len(checks.NAMES)


def test_a_number_that_does_not_exist_passes_nothing():
    assert not Verdict("nan", float("nan"), 1.0).passed


def test_the_same_seed_gives_the_same_verdicts():
    run = checks.load("two_class_risk").check
    assert run(QUICK, lambda done: None) == run(QUICK, lambda done: None)
