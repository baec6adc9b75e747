"""The verdict in a simulated world at the paper's sizes, against closed forms."""

import numpy as np
import pytest
from benchmarks.verdict_world import CLAIMS, observed, run, world

from kshot.paper.arms import MATRIX
from kshot.paper.claims import paper_rules
from kshot.paper.evaluate import Evaluator
from kshot.paper.judge import judge
from kshot.paper.noise import moderate, noise, resamples
from kshot.paper.picture import deviations
from kshot.paper.summary import verdict_sentences
from kshot.paper.verdict import AGREES, CANNOT_TELL, DIFFERS, NOT_COMPUTED

pytestmark = pytest.mark.ci

RULES = paper_rules()
PAPER = RULES.paper["datasets"]
BY_ID = {claim.id: claim for claim in CLAIMS}
NAMED = ("headline.clap.allk", "leaderboard.k4.clap", "datasets.pets.zs_ensemble", "strata.count.positive")
SOME = [BY_ID[name] for name in NAMED]
SOME += [claim for claim in CLAIMS if claim.id.startswith(("strata.", "perdataset.")) and claim not in SOME]


@pytest.fixture(scope="module")
def truth():
    return world(3)


@pytest.fixture(scope="module")
def ours(truth):
    return observed(truth, run(truth, (3, 1)))


@pytest.fixture(scope="module")
def theirs(truth):
    return observed(truth, run(truth, (3, 2)))


def test_the_noise_of_a_mean_is_that_of_its_draws(ours):
    """Var = Σ over datasets of (its share)² · (variance over draws of its mean) / draws."""
    panel = ours[MATRIX].panel
    keep = panel.tier == "dataset"
    values = (panel.column("clap") - panel.column("oracle_lambda"))[keep]
    dataset, seed = panel.dataset[keep], panel.seed[keep]
    expected = 0.0
    for name in PAPER:
        by_draw = [values[(dataset == name) & (seed == s)].mean() for s in range(5)]
        expected += (np.mean(dataset == name)) ** 2 * np.var(by_draw, ddof=1) / 5
    plan = resamples(ours)
    claim = BY_ID["headline.clap.allk"]
    figure = Evaluator([claim], RULES, plan.of(ours)).answer(claim)
    found = noise([claim.id], [figure], plan, PAPER)
    assert found.variance[0] == pytest.approx(expected, rel=0.3)
    assert 5 < found.freedom[0] <= 40
    assert not found.exact[0]


def test_a_run_beside_itself_is_the_same_to_the_bit(ours):
    judged = judge(SOME, RULES, ours, ours, "itself")
    assert judged.paired
    assert verdict_sentences(judged)[0] == "These are the same results as itself, to the bit."


def test_other_draws_are_the_same_results(ours, theirs):
    judged = judge(SOME, RULES, ours, theirs, "the other run")
    assert judged.same
    assert not judged.paired
    assert 3 < judged.level < 4.5
    verdicts = {line.claim.id: line.verdict for line in judged.lines}
    # No draw changes zero-shot accuracy.
    assert verdicts["datasets.pets.zs_ensemble"] == AGREES
    assert DIFFERS not in verdicts.values()
    drawn = [line for line in judged.lines if line.score == line.score]
    assert len(drawn) == judged.drawn > 100
    assert deviations(judged).count("<circle") == judged.drawn


def test_a_contradiction_of_the_paper_cannot_tell(ours):
    (line,) = judge([claim for claim in CLAIMS if claim.id == "loo.vs_zero_shot.allk"], RULES, ours).lines
    assert line.verdict in (AGREES, CANNOT_TELL)


def test_a_missing_draw_is_not_computed(ours):
    panel = ours[MATRIX].panel
    lost = (panel.dataset == "Pets") & (panel.seed == 4) & (panel.shots == 8) & (panel.tier == "dataset")
    arm = ours[MATRIX]
    fewer = {MATRIX: arm.where(np.append(~lost, np.ones(len(arm) - len(panel), bool)))}
    verdicts = {line.claim.id: line.verdict for line in judge(SOME, RULES, fewer).lines}
    assert verdicts["headline.clap.allk"] == NOT_COMPUTED
    assert verdicts["strata.cars.rn50.surplus"] != NOT_COMPUTED


def test_moderated_variances_lie_between_their_own_and_their_familys():
    rng = np.random.default_rng(0)
    ids = [f"perdataset.k16.{d.lower()}.{m}" for d in PAPER for m in ("clap", "lpp", "ncm")]
    variance = rng.chisquare(4, len(ids)) / 4
    found, freedom, borrowed = moderate(ids, variance, np.full(len(ids), 4.0), np.zeros(len(ids), bool), PAPER)
    assert np.log(found).std() < np.log(variance).std()
    assert (freedom > 8).all()
    lacking = np.arange(len(ids)) == 5
    lent, _, borrowed = moderate(ids, np.where(lacking, np.nan, variance), np.full(len(ids), 4.0), lacking, PAPER)
    assert borrowed.tolist() == lacking.tolist()
    assert 0.2 < lent[5] < 5
