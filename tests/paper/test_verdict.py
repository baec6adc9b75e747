"""The verdict in a simulated world at the paper's sizes, against closed forms, brute force and planted faults."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import verdict as worlds
from benchmarks.verdict_world import (
    BACKBONES,
    CLAIMS,
    DATASETS,
    METHODS,
    SEEDS,
    SHOTS,
    TIERS,
    col,
    observed,
    run,
    world,
)
from scipy import stats

import kshot
from kshot.data.store import Store
from kshot.paper.arms import MATRIX
from kshot.paper.beside import LEVEL, at_least_once, global_test, other_pictures
from kshot.paper.claims import paper_rules
from kshot.paper.comparable import other_cells, why_only_shown
from kshot.paper.evaluate import Evaluator
from kshot.paper.figures import Place, figure_table
from kshot.paper.folders import gather_records
from kshot.paper.judge import judge
from kshot.paper.noise import draw_noise, moderate
from kshot.paper.rehearsal import WORLDS, write_stratum
from kshot.paper.signs import copies, recipes_apart
from kshot.paper.summary import as_csv, places_table, verdict_sentences
from kshot.paper.two_runs import exchange_cubes
from kshot.paper.verdict import AGREES, DIFFERS, NOT_COMPARABLE, NOT_COMPUTED, SHOWN

RULES = paper_rules()
PAPER = RULES.paper["datasets"]
BY_ID = {claim.id: claim for claim in CLAIMS}
SOME = [BY_ID[name] for name in ("headline.clap.allk", "leaderboard.k4.clap", "datasets.pets.zs_ensemble")]
SOME += [claim for claim in CLAIMS if claim.id.startswith(("strata.", "perdataset."))]


@pytest.fixture(scope="module")
def truth():
    return world(3)


@pytest.fixture(scope="module")
def ours(truth):
    return observed(truth, run(truth, (3, 1)))


@pytest.fixture(scope="module")
def theirs(truth):
    return observed(truth, run(truth, (3, 2)))


def tabled(arms, *names):
    evaluator = Evaluator(CLAIMS, RULES, arms)
    claims = [BY_ID[name] for name in names]
    return figure_table(claims, [evaluator.answer(claim) for claim in claims], arms)


def test_a_figures_draws_sum_to_it_and_to_its_noise(ours):
    """Var = Σ over datasets of (its share)² · (variance over draws of its mean) / draws."""
    panel = ours[MATRIX].panel
    keep = panel.tier == "dataset"
    values = (panel.column("clap") - panel.column("oracle_lambda"))[keep]
    dataset, seed = panel.dataset[keep], panel.seed[keep]
    expected = 0.0
    for name in PAPER:
        by_draw = [values[(dataset == name) & (seed == s)].mean() for s in range(SEEDS)]
        expected += (np.mean(dataset == name)) ** 2 * np.var(by_draw, ddof=1) / SEEDS
    table = tabled(ours, "headline.clap.allk")
    assert table.parts.sum() == pytest.approx(values.mean()) == table.value[0]
    assert (table.deviations**2).sum() / (SEEDS * (SEEDS - 1)) == pytest.approx(expected)


def test_a_figure_answers_to_a_point_as_records_with_that_point_do(truth):
    names = ("headline.clap.allk", "leaderboard.mean.clap", "priors.cupl.zero_shot", "perbackbone.rn50.clap")
    before = tabled(observed(truth, run(truth, (3, 1))), *names)
    places, responses = before.entries.responses()
    for place, index in (
        (Place(item="clap"), np.s_[..., col("clap")]),
        (Place(dataset="Cars", backbone="RN50"), np.s_[DATASETS.index("Cars"), 0]),
        (Place(tier="cupl", item="zero_shot"), np.s_[:, :, TIERS.index("cupl"), :, :, col("zero_shot")]),
        (Place(shots="16", item="oracle_lambda"), np.s_[:, :, :, SHOTS.index(16), :, col("oracle_lambda")]),
    ):
        moved = run(truth, (3, 1))
        moved.accuracy[index] += 1
        after = tabled(observed(truth, moved), *names)
        number = places.index(place)
        # Accuracies are whole pictures.
        np.testing.assert_allclose(after.value - before.value, responses[:, number], atol=0.05)


def test_other_test_pictures_move_accuracies_and_not_what_is_a_difference_of_one_encoder(ours):
    table = tabled(ours, "perdataset.k16.imagenet.clap", "perdataset.k16.cars.clap", "strata.imagenet.rn50.surplus")
    sizes = {"ImageNet": 16_000, "SUN397": 34_805}
    level, none, difference = np.sqrt((other_pictures(table, ["ImageNet", "SUN397"], sizes) ** 2).sum(axis=0))
    assert level == pytest.approx(100 * np.sqrt(2 * 0.68 * 0.65 * 0.35 / 16_000))
    assert none == 0
    assert difference == pytest.approx(level * np.sqrt(2 * 0.2))


def test_moderated_variances_lie_between_their_own_and_their_kinds():
    rng = np.random.default_rng(0)
    q = rng.chisquare(4, (10, 30)) / 4
    found, freedom, spare = moderate(q, np.full(q.shape, 4.0), np.repeat(np.arange(10), 3))
    assert np.log(found).std() < 0.6 * np.log(q).std()
    assert (freedom > 8).all()
    assert spare == 300 - 20
    assert np.exp(np.log(found).mean()) == pytest.approx(1, rel=0.15)


def test_the_largest_of_many_scores_is_as_rare_as_it_says():
    largest = np.abs(np.random.default_rng(0).normal(size=(20_000, 50))).max(axis=1)
    for score in (2.5, 3.0):
        assert at_least_once(score, 50) == pytest.approx((largest > score).mean(), abs=0.01)


def test_the_test_is_students_for_a_single_figure(ours):
    table = tabled(ours, "headline.clap.allk")
    noise = draw_noise(table, PAPER, 5)
    found = global_test(table, np.array([0.3]), noise, np.zeros(1), np.zeros((1, 1)))
    t = 0.3 / np.sqrt(noise.variance[0])
    assert found.p == pytest.approx(2 * stats.t.sf(t, noise.freedom[0]))
    assert found.places == []


@pytest.mark.parametrize("mode", ["full", "two draws", "one draw", "--small", "two runs", "same draws"])
def test_a_run_without_fault_is_the_same(mode):
    judged = worlds.judged(mode, 1)
    assert judged.same, verdict_sentences(judged)[:3]
    assert verdict_sentences(judged)[0].startswith("These are the same results as")
    assert ("kept run" in judged.noise) == (mode in ("one draw", "--small"))


@pytest.mark.parametrize(
    ("fault", "mode", "word"),
    [
        ("half the epochs of CLAP", "same draws", "clap: "),
        ("half the epochs of CLAP", "full", "clap"),
        ("two labels swapped in DTD", "full", "DTD"),
        ("two labels swapped in DTD", "two runs", "DTD"),
        ("test sets of 90 %", "full", "test pictures here"),
        ("K = 8 copied from K = 4 in Cars", "full", "K = 8 is the same as K = 4 in Cars"),
        ("shared supports in two sets", "two runs", "is the same as draw 0 in Aircraft, Flowers102"),
        ("ViT-B/32 centred", "two runs", "ViT-B-32"),
    ],
)
def test_a_fault_is_seen_where_it_is(fault, mode, word):
    judged = worlds.judged(mode, 1, worlds.FAULTS[fault][0])
    assert not judged.same
    told = [*judged.signs, *(str(one.place) for one in judged.places[:3])]
    assert any(word in one for one in told), told
    assert "looks like" not in " ".join(verdict_sentences(judged))


def test_a_run_beside_itself_is_the_same_to_the_bit(ours):
    judged = judge(SOME, RULES, ours, ours, "itself")
    assert verdict_sentences(judged)[0] == "These are the same results as itself, to the bit."
    assert {line.verdict for line in judged.lines} <= {AGREES, NOT_COMPUTED}


def test_what_only_one_run_has_is_left_out_and_named(truth, ours):
    other = worlds.cut(run(truth, (3, 2)), (2, DATASETS, BACKBONES))
    judged = judge(SOME, RULES, ours, observed(truth, other), "the other run")
    assert judged.lacking == ([], ["draw 2", "draw 3", "draw 4"])
    assert any("lacks draw 2" in sentence for sentence in verdict_sentences(judged))


def test_exchanged_draws_find_a_shift_and_nothing_else():
    rng = np.random.default_rng(0)
    names = {"dataset": ["a", "b", "c", "d"], "backbone": ["e", "f"], "tier": ["t"], "shots": [1, 4]}
    shape, items = (4, 2, 1, 2, 5, 3), ["x", "y", "quantity share"]
    found = [exchange_cubes(rng.normal(size=shape), rng.normal(size=shape), names, items, 2).p for _ in range(20)]
    assert min(found) > 0.005
    assert np.mean(found) > 0.3
    a, b = rng.normal(size=shape), rng.normal(size=shape)
    a[:, 1, ..., 1] += 3
    moved = exchange_cubes(a, b, names, items, 2)
    assert moved.p <= 0.01
    assert (moved.places[0].place.backbone, moved.places[0].place.item) == ("f", "y")
    assert moved.places[0].size == pytest.approx(3, abs=1)


def test_only_means_over_the_papers_cells_are_evidence(ours):
    evaluator = Evaluator(CLAIMS, RULES, ours)
    shown = {
        "count.cells.dropped": "count", "strata.count.positive": "count", "loo.kcorr.gain.max": "extreme",
        "capacity.spearman": "correlation", "strata.cars.rn50.sd_k2_measured": "spread", "headline.clap.allk": "",
    }  # fmt: skip
    for name, why in shown.items():
        claim = BY_ID[name]
        assert why in (found := why_only_shown(claim, evaluator.answer(claim), RULES)), (name, found)
        assert bool(why) == bool(found)


def test_figures_of_other_cells_are_not_comparable(ours):
    evaluator = Evaluator(CLAIMS, RULES, ours)
    tip, share = BY_ID["leaderboard.k16.tip_adapter_test"], BY_ID["share.all"]
    assert evaluator.answer(tip).n == tip.cells == 175
    assert other_cells(tip, evaluator.answer(tip), RULES, 5) == ""
    assert other_cells(share, evaluator.answer(share), RULES, 5) == ""
    assert "4,800 cells here" in other_cells(replace(share, cells=4_700), evaluator.answer(share), RULES, 5)
    judged = {line.claim.id: line for line in judge(CLAIMS, RULES, ours).lines}
    assert judged["strata.sun397.rn50.headroom"].verdict == NOT_COMPARABLE
    assert judged["priors.cupl.lambda_loo"].why == "not comparable: 950 cells here, 1,200 there"
    assert "assumed: without ImageNet and SUN397" in judged["leaderboard.k16.tip_adapter_test"].why or (
        judged["leaderboard.k16.tip_adapter_test"].verdict != AGREES
    )


def test_copies_are_named_and_chance_is_none(truth):
    assert copies(observed(truth, run(truth, (3, 1)))[MATRIX]) == []
    wrong = run(truth, (3, 1))
    wrong.accuracy[:, 2] = wrong.accuracy[:, 1]
    (told,) = copies(observed(truth, wrong)[MATRIX])
    assert {"ViT-B-16", "ViT-B-32"} <= set(told.split())


def test_other_parameters_are_told_before_statistics():
    here = {"clap": [{"method": "x", "epochs": 150}], "lpp": [{"method": "y"}, {"method": "y", "restarts": 3}]}
    there = {"clap": [{"method": "x", "epochs": 300}], "lpp": [{"method": "y", "restarts": 2}, {"method": "y"}]}
    assert recipes_apart(here, there) == ["clap: epochs 150 here, 300 there", "lpp: restarts 3 here, 2 there"]


def test_parameters_in_records_are_held_against_the_papers_study(tmp_path):
    """A tiny run with half of CLAP's epochs; loo_blend has no recipe at K = 1."""
    write_stratum(Store(tmp_path / "features"), WORLDS["DTD"], "ViT-B-16")
    study = TINY.format(clap="anchor_scale = 10.0, epochs = 150")
    judged = _tiny(study, tmp_path)
    told, *facts = judged.signs
    assert told == "clap: epochs 150 here, 300 there"
    assert told in verdict_sentences(judged)[0]
    assert _tiny(TINY.format(clap="anchor_scale = 10.0"), tmp_path).signs == facts


TINY = """
name = "mine"
datasets = ["DTD"]
backbones = ["ViT-B-16"]
tiers = ["dataset"]
shots = [1, 2]
seeds = [0]
methods = ["zero_shot", "loo_blend", {{ as = "clap", use = "clap", {clap} }}]
"""


def _tiny(study, folder):
    (folder / "mine.toml").write_text(study)
    results = kshot.run(folder / "mine.toml", features=folder / "features", records=folder / "records", workers=1)
    return judge(CLAIMS, RULES, gather_records(None, results.records))


def test_a_missing_draw_is_not_computed(ours):
    panel = ours[MATRIX].panel
    lost = (panel.dataset == "Pets") & (panel.seed == 4) & (panel.shots == 8) & (panel.tier == "dataset")
    arm = ours[MATRIX]
    fewer = {MATRIX: arm.where(np.append(~lost, np.ones(len(arm) - len(panel), bool)))}
    verdicts = {line.claim.id: line.verdict for line in judge(SOME, RULES, fewer).lines}
    assert verdicts["headline.clap.allk"] == NOT_COMPUTED
    assert verdicts["strata.cars.rn50.surplus"] != NOT_COMPUTED


def test_a_figure_that_no_draw_changes_is_held_to_its_rounding(truth):
    claims = worlds.printed(1)
    name = "datasets.pets.zs_ensemble"
    own = copy.deepcopy(run(world(worlds.FIRST + 1), (worlds.FIRST, 1, 1)))
    own.accuracy[DATASETS.index("Pets"), :, TIERS.index("ensemble"), ..., METHODS.index("zero_shot")] += 1
    judged = judge(claims, RULES, observed(world(worlds.FIRST + 1), own))
    (line,) = [line for line in judged.lines if line.claim.id == name]
    assert (line.verdict, line.why) == (DIFFERS, "no draw changes it")
    assert line in judged.fixed_apart
    assert not judged.same


def test_a_judgement_is_a_table_of_places_and_a_csv(truth):
    judged = worlds.judged("full", 2)
    places = places_table(judged)
    assert places.columns == ("dataset", "encoder", "tier", "K", "method", "points", "z")
    assert 0 < len(places.rows) <= 10
    assert len(as_csv(judged).splitlines()) == len(judged.lines) + 1
    assert any("once in 33" in sentence for sentence in verdict_sentences(judged))
    assert {SHOWN, AGREES} <= {line.verdict for line in judged.lines}
    assert LEVEL == 0.03


def test_the_same_number_of_draws_under_other_numbers_is_compared(truth, ours):
    shifted = observed(truth, run(truth, (3, 2)))[MATRIX]
    for seeds in (shifted.keys["seed"], shifted.panel.cells["seed"]):
        seeds[seeds >= 0] += 5
    judged = judge(SOME[:5], RULES, ours, {MATRIX: shifted}, "the other run")
    assert judged.same
    assert judged.lacking == ([], [])
    assert 0.03 < judged.p < 1
