"""A check that cannot fail proves nothing: every wrong version of every formula must make one fail."""

from functools import cache
from importlib import import_module

import pytest

from kshot.theory.checks import CHECKS
from kshot.theory.checks.trial import Effort
from mutants import mutants

pytestmark = pytest.mark.ci

EFFORT = Effort(40)

# module, function, the checks that answer for it
FORMULAS = [
    ("solvers.rows", "mean_variances", "plug_in"),
    ("solvers.rows", "james_stein_ratio", "plug_in"),
    ("solvers.rows", "optimal_ratio", "plug_in"),
    ("solvers.rows", "correct_for_shots", "shot_correction"),
    ("solvers.rows", "common_offset", "common_shift"),
    ("solvers.rows", "class_independent_share", "common_shift"),
    ("theory.blend_error", "blend_risk", "plug_in"),
    ("theory.blend_error", "optimal_risk", "plug_in"),
    ("theory.blend_error", "classical_james_stein_ratio", "james_stein"),
    ("theory.blend_error", "dominates_mean", "dominance"),
    ("theory.blend_error", "mean_inverse_square", "dominance"),
    ("theory.blend_error", "unclipped_risk_change", "dominance"),
    ("theory.sampling", "distance_law", "sampling_isotropic"),
    ("theory.sampling", "variance_law", "sampling_isotropic"),
    ("theory.sampling", "isotropic_standard_error", "sampling_isotropic"),
    ("theory.sampling", "distance_variance", "sampling_general"),
    ("theory.sampling", "variance_variance", "sampling_general"),
    ("theory.sampling", "participation_ratio", "sampling_general"),
    ("theory.sampling", "general_standard_error", "sampling_general"),
    ("theory.sampling", "unbiased_trace_of_square", "trace_square"),
    ("theory.decision", "inner_product_scores", "common_shift"),
    ("theory.decision", "nearest_prototype_scores", "common_shift"),
    ("theory.decision", "decisive_part", "common_shift"),
    ("theory.decision", "expected_squared_overlap", "common_shift"),
    ("theory.decision", "squared_cosines", "common_shift"),
    ("theory.decision", "signed_margins", "two_class_risk"),
    ("theory.decision", "score_variance", "two_class_risk"),
    ("theory.decision", "blend_error", "two_class_risk"),
    ("theory.decision", "noisy_score_variance", "noise_aware"),
    ("theory.decision", "deflection", "noise_aware"),
    ("theory.decision", "noise_aware_shrinkage", "noise_aware"),
    ("theory.capacity", "separation_error", "error_formula"),
    ("theory.capacity", "path_margin", "best_on_path"),
    ("theory.capacity", "stationary_shrinkage", "best_on_path"),
    ("theory.capacity", "best_on_path", "best_on_path"),
    ("theory.capacity", "plane_squared_margin", "nesting"),
    ("theory.capacity", "margin_ratio", "nesting"),
    ("theory.capacity", "headroom", "nesting"),
    ("theory.capacity", "pair_forms", "nesting best_on_path"),
    ("theory.values", "pair_products", "nesting"),
]

# Changes that leave the formula what it was.
EQUIVALENT = {
    # the width of a summation window that already holds all of the mass
    ("mean_inverse_square", "12 -> 13"),
    ("mean_inverse_square", "60 -> 61"),
    # centring before differences of rows are taken is for rounding only
    ("squared_cosines", "prototypes - prototypes.mean(axis=0) -> prototypes + prototypes.mean(axis=0)"),
    ("pair_forms", "means - means.mean(axis=0) -> means + means.mean(axis=0)"),
    ("pair_forms", "gap - gap.mean(axis=0) -> gap + gap.mean(axis=0)"),
}


def holds(names: str) -> bool:
    try:
        return all(v.passed for name in names.split() for v in CHECKS[name](EFFORT))
    except Exception:
        return False


@cache
def holds_unchanged(names: str) -> bool:
    return holds(names)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("module", "function", "names"), FORMULAS, ids=[row[1] for row in FORMULAS])
def test_every_wrong_formula_fails_its_check(monkeypatch, module, function, names):
    assert holds_unchanged(names)
    where = import_module(f"kshot.{module}")
    changes = list(mutants(where, function))
    assert changes or function == "inner_product_scores"
    survivors = set()
    for change, mutant in changes:
        monkeypatch.setattr(where, function, mutant)
        if holds(names):
            survivors.add((function, change))
    assert survivors <= EQUIVALENT
