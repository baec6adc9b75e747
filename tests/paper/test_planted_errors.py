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

from kshot.bench import cell
from kshot.bench.cell import run_cell
from kshot.bench.record import table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data import stratum as strata_module
from kshot.data.episode import draw_support, too_thin
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.methods import js_blend, loo_blend
from kshot.paper import formulas
from kshot.paper.arms import Observations, gather, joined
from kshot.paper.claims import paper_claims, paper_rules, read_claims
from kshot.paper.evaluate import Evaluator
from kshot.paper.judge import holds
from kshot.paper.rehearsal import WORLDS, write_stratum
from kshot.solvers import ratio_sweep
from kshot.solvers.rows import class_counts, mean_variances
from kshot.stats import coverage
from kshot.stats.panel import Panel
from kshot.theory import capacity
from kshot.theory.probes import measure, offset, per_class, spread
from kshot.theory.probes.measure import GROUPS, measure_draws, measure_geometry
from kshot.theory.probes.stored import probe_rows
from kshot.theory.sampling import general_standard_error

DATASETS, BACKBONES, TIERS, SHOTS, SEEDS = (
    ("EuroSAT", "Flowers102", "Pets"),
    ("RN50", "ViT-B-16"),
    ("dataset", "photo"),
    (1, 2, 8),
    (0, 1),
)
METHODS = (
    "zero_shot",
    "ncm",
    "js_blend",
    "centred_js_blend",
    "loo_blend",
    "loo_blend_kcorr",
    "oracle_lambda",
    "mse_oracle",
)
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


def _without_guard(panel):
    return np.ones(len(panel.shots), bool)


def _other_cells_baseline(panel, method, measure="value"):
    column = _column(panel, method, measure)
    return np.roll(column, 1) if method == "oracle_lambda" else column


_column = Panel.column


def _first_of_the_tier(observed, values, axis, to):
    """Pairs every draw with the tier's first cell of the stratum."""
    first = {}
    for key, value in zip(observed.rows, values[0], strict=True):
        if key[2] == to:
            first.setdefault(key[:2], value)
    return np.array([[first.get(key[:2], np.nan) for key in observed.rows]])


def _normal_quantile(freedom, level):
    return 1.959964


_mean = formulas.Slice.mean


def _each_cell_a_cluster(cells, values):
    return _mean(replace(cells, dataset=np.arange(len(cells.dataset))), values)


def _share_without_centring(means, text):
    return float(np.linalg.norm((text - means).mean(axis=0)))


def _no_deflation(X, y, means, counts):
    return means[y]


def _biased_variances(X, y, means):
    counts = class_counts(y, len(means))
    return (mean_variances(X, y, means) * (counts - 1) / counts).astype(X.dtype)


def _odds_the_other_way(lam, shots):
    odds = lam * (shots - 1) / shots
    return odds / (odds + (1 - lam))


def _same_support_for_every_seed(dataset, ids, y, shots, seed):
    return draw_support(dataset, ids, y, shots, 0)


def _spread_of_the_mean(supports, text):
    return float(np.std([spread.support_ratios(s, text).mean() for s in supports], ddof=1))


def _error_of_the_whole_margin(squared_margin):
    return norm.cdf(-np.sqrt(squared_margin))


def _scored_where_fitted(y, seed=0):
    return np.arange(len(y)), np.arange(len(y))


def _offset_of_one_class(means, text):
    return (text - means)[0]


def _no_shot_lost(g2, trace, trace_square, along, shots):
    return general_standard_error(g2, trace, trace_square, along, shots + 1)


# Each error with a number that it must move, and what has to be computed again to see it.
STATISTICS = {
    "guard left out": (Panel, "present_at_every_shot_count", _without_guard, "leaderboard.k2.ncm"),
    "baseline of another cell": (Panel, "column", _other_cells_baseline, "headline.clap.allk"),
    "tiers paired across draws": (Observations, "moved", _first_of_the_tier, "priors.dataset.d2"),
    "normal instead of t quantile": (coverage, "critical_value", _normal_quantile, "coverage.student_t.*"),
    "cells resampled": (formulas.Slice, "mean", _each_cell_a_cluster, "coverage.cell_resampling.shrink"),
}
CELLS = {
    "share without centring": ((cell, "class_independent_share", _share_without_centring), ("zero_shot",), "share.all"),
    "no deflation": ((ratio_sweep, "deflated_means", _no_deflation), ("loo_blend",), "leaderboard.k?.loo_blend"),
    "variance divided by K": (
        (js_blend, "mean_variances", _biased_variances),
        ("js_blend", "oracle_lambda"),
        "js.vs_oracle.allk",
    ),
    "K-correction the other way": (
        (loo_blend, "correct_for_shots", _odds_the_other_way),
        ("loo_blend_kcorr",),
        "leaderboard.k?.loo_blend_kcorr",
    ),
    "one draw for all seeds": (
        (strata_module, "draw_support", _same_support_for_every_seed),
        ("ncm",),
        "leaderboard.k?.ncm",
    ),
}
PROBES = {
    "spread of the mean over classes": (
        (measure, "measured_spread", _spread_of_the_mean),
        "draws",
        "strata.*.sd_k2_measured",
    ),
    "prediction for one shot more": (
        (spread, "general_standard_error", _no_shot_lost),
        "geometry",
        "strata.*.sd_k16_predicted",
    ),
    "error of the whole margin": (
        (capacity, "separation_error", _error_of_the_whole_margin),
        "geometry",
        "strata.*.headroom",
    ),
    "scored where it was fitted": ((per_class, "halves", _scored_where_fitted), "per_class", "perclass.out_of_sample"),
    "offset of one class": (
        (offset, "common_offset", _offset_of_one_class),
        "draws",
        "perclass.counterfactual.no_offset",
    ),
}


@pytest.mark.parametrize("error", STATISTICS)
def test_an_error_of_the_statistics_differs(error, records, probes, registry, monkeypatch):
    *planted, number = STATISTICS[error]
    monkeypatch.setattr(*planted)
    assert differs(records, probes, registry, number)


@pytest.mark.parametrize("error", CELLS)
def test_an_error_in_a_cell_differs(error, store, records, probes, registry, monkeypatch):
    planted, methods, number = CELLS[error]
    monkeypatch.setattr(*planted)
    # Of a method recorded twice the first counts.
    wrong = joined([records_of(store, methods, ("dataset",)), records])
    assert differs(wrong, probes, registry, number)


@pytest.mark.parametrize("error", PROBES)
def test_an_error_of_a_probe_differs(error, store, records, probes, registry, monkeypatch):
    planted, group, number = PROBES[error]
    monkeypatch.setattr(*planted)
    # Of a quantity measured twice the last counts.
    wrong = pa.concat_tables([probes, probes_of(store, [group])])
    assert differs(records, wrong, registry, number)
