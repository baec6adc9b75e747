"""A planted error anywhere between the draw and the verdict moves a number.

A small rehearsal's own numbers serve as the published ones. Computed again, every number is the same; with one error
planted, some number is not.
"""

import csv
import io
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from kshot.bench.cell import run_cell
from kshot.bench.record import table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.episode import draw_support, too_thin
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.paper import formulas
from kshot.paper.arms import gather, joined
from kshot.paper.claims import paper_claims, paper_rules, read_claims
from kshot.paper.evaluate import Evaluator
from kshot.paper.judge import holds
from kshot.paper.rehearsal import WORLDS, write_stratum
from kshot.solvers.rows import class_counts, mean_variances
from kshot.stats.panel import Panel
from kshot.theory.probes.measure import GROUPS, measure_draws, measure_geometry
from kshot.theory.probes.spread import support_ratios
from kshot.theory.probes.stored import probe_rows
from kshot.theory.sampling import general_standard_error

DATASETS, BACKBONES, TIERS = ("EuroSAT", "Flowers102", "Pets"), ("RN50", "ViT-B-16"), ("dataset", "photo")
SHOTS, SEEDS = (1, 2, 8), (0, 1)
METHODS = ("zero_shot", "ncm", "js_blend", "centred_js_blend", "loo_blend", "loo_blend_kcorr", "oracle_lambda")
METHODS += ("mse_oracle",)
# Cheap heads under the probes' names: the comparison is tested, not the probes.
STAND_INS = {"clap": "mse_oracle", "lpp": "ncm"}
SMALL = {"datasets": list(DATASETS), "backbones": list(BACKBONES), "tiers": list(TIERS)}
RULES = replace(paper_rules(), paper={**paper_rules().paper, **SMALL})
STUDY = Study("paper", ())


@pytest.fixture(scope="module", autouse=True)
def few_trials():
    """Coverage is simulated anew in every comparison."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formulas, "TRIALS", 400)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    found = Store(tmp_path_factory.mktemp("features"))
    for dataset, backbone in product(DATASETS, BACKBONES):
        write_stratum(found, WORLDS[dataset], backbone)
    return found


def strata(store):
    for dataset, backbone in product(DATASETS, BACKBONES):
        stratum = load_stratum(store, dataset, backbone)
        yield stratum, [k for k in SHOTS if not too_thin(stratum.pool.y, stratum.n_classes, k)]


def records_of(store, methods=(*METHODS, *STAND_INS), tiers=TIERS):
    """Cells again, with the code as it stands at this moment."""
    specs = [MethodSpec(name, STAND_INS.get(name, name)) for name in methods]
    tables = []
    for stratum, usable in strata(store):
        for tier in tiers:
            prior = load_prior(store, stratum.dataset, stratum.backbone, tier)
            for shots, seed in product(usable, SEEDS):
                where = Cell(stratum.dataset, stratum.backbone, tier, shots, seed)
                tables.append(table(STUDY, *run_cell(where, specs, stratum, prior)))
    return pa.concat_tables(tables)


def probes_of(store, groups=GROUPS):
    """Probes again."""
    measured = []
    for stratum, usable in strata(store):
        text = load_prior(store, stratum.dataset, stratum.backbone, "dataset").text
        whole = Cell(stratum.dataset, stratum.backbone, "dataset", 0, -1)
        if "geometry" in groups:
            measured += measure_geometry(whole, stratum, text, [2, 8, 16])
        for shots in usable:
            draws = [replace(whole, shots=shots, seed=seed) for seed in SEEDS]
            if "draws" in groups:
                measured += measure_draws(draws, stratum, text, "draws")
            if "per_class" in groups and stratum.backbone == "ViT-B-16" and shots == 2:
                measured += measure_draws(draws, stratum, text, "per_class")
    return pa.Table.from_pylist(probe_rows(measured))


def figures(records, probes, claims):
    """The number of every claim."""
    evaluator = Evaluator(claims, RULES, gather([records], [probes]))
    return {claim: evaluator.answer(claim) for claim in claims}


def differs(records, probes, registry, number):
    """Whether one of the numbers with such a name differs."""
    touched = [claim for claim in registry if fnmatchcase(claim.id, number)]
    assert touched
    return not all(holds(claim, figure.values[0]) for claim, figure in figures(records, probes, touched).items())


@pytest.fixture(scope="module")
def records(store):
    return records_of(store)


@pytest.fixture(scope="module")
def probes(store):
    return probes_of(store)


@pytest.fixture(scope="module")
def registry(records, probes, tmp_path_factory):
    """The rehearsal's own numbers in the columns of the paper's registry, to nine digits; seconds are left out."""
    found = figures(records, probes, paper_claims())
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("id", "place", "arm", "quantity", "unit", "value", "low", "high", "n", "restrict", "kind"))
    for c, figure in found.items():
        if not figure.known or c.kind == "cost":
            continue
        restrict = "; ".join(part for part in c.restrict.split("; ") if not part.startswith("relation="))
        value = f"{figure.values[0]:.9e}"
        writer.writerow((c.id, c.place, c.arm, c.quantity, c.unit, value, "", "", "", restrict, c.kind))
    path = tmp_path_factory.mktemp("registry") / "claims.csv"
    path.write_text(out.getvalue(), encoding="utf-8")
    return read_claims(path)


def test_computed_again_every_number_agrees(store, registry):
    again = figures(records_of(store), probes_of(store), registry)
    assert len(registry) > 100
    assert [claim.id for claim, figure in again.items() if not holds(claim, figure.values[0])] == []


_column, _mean = Panel.column, formulas.Slice.mean


def _other_cells_baseline(panel, method, measure="value"):
    column = _column(panel, method, measure)
    return np.roll(column, 1) if method == "oracle_lambda" else column


def _first_of_the_tier(observed, values, axis, to):
    """Pairs every draw with the tier's first cell of the stratum."""
    first = {}
    for key, value in zip(observed.rows, values[0], strict=True):
        if key[2] == to:
            first.setdefault(key[:2], value)
    return np.array([[first.get(key[:2], np.nan) for key in observed.rows]])


def _each_cell_a_cluster(cells, values):
    return _mean(replace(cells, dataset=np.arange(len(cells.dataset))), values)


def _biased_variances(X, y, means):
    counts = class_counts(y, len(means))
    return (mean_variances(X, y, means) * (counts - 1) / counts).astype(X.dtype)


def _odds_the_other_way(lam, shots):
    odds = lam * (shots - 1) / shots
    return odds / (odds + (1 - lam))


def _one_draw(dataset, ids, y, shots, seed):
    return draw_support(dataset, ids, y, shots, 0)


def _spread_of_the_mean(supports, text):
    return float(np.std([support_ratios(s, text).mean() for s in supports], ddof=1))


def _no_shot_lost(g2, trace, trace_square, along, shots):
    return general_standard_error(g2, trace, trace_square, along, shots + 1)


# Each error: where it is put, the wrong version, a number that it must move, and the methods or the probes that have to
# be computed again to see it.
ERRORS = {
    "guard left out": (
        *("stats.panel.Panel.present_at_every_shot_count", lambda panel: np.ones(len(panel.shots), bool)),
        *("leaderboard.k2.ncm", ()),
    ),
    "baseline of another cell": ("stats.panel.Panel.column", _other_cells_baseline, "headline.clap.allk", ()),
    "tiers paired across draws": ("paper.arms.Observations.moved", _first_of_the_tier, "priors.dataset.d2", ()),
    "normal instead of t quantile": (
        *("stats.coverage.critical_value", lambda freedom, level: 1.959964, "coverage.student_t.*", ()),
    ),
    "cells resampled": ("paper.formulas.Slice.mean", _each_cell_a_cluster, "coverage.cell_resampling.shrink", ()),
    "share without centring": (
        *("bench.cell.class_independent_share", lambda means, text: float(np.linalg.norm((text - means).mean(axis=0)))),
        *("share.all", ("zero_shot",)),
    ),
    "no deflation": (
        *("solvers.ratio_sweep.deflated_means", lambda X, y, means, counts: means[y]),
        *("leaderboard.k?.loo_blend", ("loo_blend",)),
    ),
    "variance divided by K": (
        *("methods.js_blend.mean_variances", _biased_variances, "js.vs_oracle.allk", ("js_blend", "oracle_lambda")),
    ),
    "K-correction the other way": (
        *("methods.loo_blend.correct_for_shots", _odds_the_other_way),
        *("leaderboard.k?.loo_blend_kcorr", ("loo_blend_kcorr",)),
    ),
    "one draw for all seeds": ("data.stratum.draw_support", _one_draw, "leaderboard.k?.ncm", ("ncm",)),
    "spread of the mean over classes": (
        *("theory.probes.measure.measured_spread", _spread_of_the_mean, "strata.*.sd_k2_measured", "draws"),
    ),
    "prediction for one shot more": (
        *("theory.probes.spread.general_standard_error", _no_shot_lost, "strata.*.sd_k16_predicted", "geometry"),
    ),
    "error of the whole margin": (
        *("theory.capacity.separation_error", lambda squared: norm.cdf(-np.sqrt(squared))),
        *("strata.*.headroom", "geometry"),
    ),
    "scored where it was fitted": (
        *("theory.probes.per_class.halves", lambda y: (np.arange(len(y)), np.arange(len(y)))),
        *("perclass.out_of_sample", "per_class"),
    ),
    "offset of one class": (
        *("theory.probes.offset.common_offset", lambda means, text: (text - means)[0]),
        *("perclass.counterfactual.no_offset", "draws"),
    ),
}


@pytest.mark.parametrize("error", ERRORS)
def test_a_planted_error_moves_a_number(error, store, records, probes, registry, monkeypatch):
    place, wrong, number, again = ERRORS[error]
    monkeypatch.setattr(f"kshot.{place}", wrong)
    if again in GROUPS:
        # Of a quantity measured twice the last counts.
        probes = pa.concat_tables([probes, probes_of(store, [again])])
    elif again:
        # Of a method recorded twice the first counts.
        records = joined([records_of(store, again, ("dataset",)), records])
    assert differs(records, probes, registry, number)
