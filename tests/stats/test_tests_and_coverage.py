"""Sample-level tests, corrections, and the promise of the intervals."""

import numpy as np
import pytest
from scipy import stats

from kshot.stats.bootstrap import cluster_mean, simultaneous
from kshot.stats.coverage import PAPER_DESIGN, Design, matched_design, simulate_coverage
from kshot.stats.paired_tests import holm, mcnemar, sample_contrast
from kshot.stats.panel import panel
from synthetic_records import as_table, synthetic_rows, synthetic_table


def test_mcnemar_is_the_exact_binomial_test():
    first, second = np.array([0, 3, 12, 40, 7]), np.array([0, 9, 2, 41, 7])
    expected = [
        stats.binomtest(int(a), int(a + b)).pvalue if a + b else 1.0 for a, b in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(mcnemar(first, second), expected)


def test_discordant_pictures_are_counted_from_the_packed_hits():
    rows = synthetic_rows(tiers=("dataset",))
    found = sample_contrast(panel(as_table(rows)), "clap", "js_blend")
    hits = {}
    for row in rows:
        if row["status"] == "ok":
            key = (row["dataset"], row["backbone"], row["tier"], row["shots"], row["seed"])
            hits[(*key, row["method"])] = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: row["n_test"]]
    cells = sorted({key[:5] for key in hits if (*key[:5], "js_blend") in hits})
    only = [int(np.sum((hits[(*c, "clap")] == 1) & (hits[(*c, "js_blend")] == 0))) for c in cells]
    other = [int(np.sum((hits[(*c, "clap")] == 0) & (hits[(*c, "js_blend")] == 1))) for c in cells]
    assert found.only_first.tolist() == only
    assert found.only_second.tolist() == other
    first, second, undecided = found.decided_for()
    assert first + second + undecided == len(cells)
    assert first > second


def test_a_method_without_hits_leaves_no_cell():
    found = sample_contrast(panel(synthetic_table()), "clap", "nothing")
    assert len(found.p) == 0
    assert found.decided_for() == (0, 0, 0)


def test_holm_by_hand_and_in_any_order():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])
    order = np.array([2, 0, 3, 1])
    np.testing.assert_allclose(holm(p[order]), holm(p)[order])
    assert holm(np.array([0.9, 0.8])).max() == 1


def test_simultaneous_intervals_use_the_level_divided_by_their_number():
    rng = np.random.default_rng(0)
    names = np.repeat(list("abcde"), 8)
    plain = {m: cluster_mean(rng.normal(size=40), names) for m in "xyz"}
    wider = simultaneous(plain)
    for name, estimate in plain.items():
        half = stats.t.ppf(1 - 0.05 / 3 / 2, 4) * estimate.error
        assert wider[name].high == pytest.approx(estimate.mean + half)
        assert wider[name].low < estimate.low


def test_coverage_of_ten_clusters_as_the_study_measured_it():
    found = simulate_coverage(PAPER_DESIGN, trials=8_000)
    assert found.percentile == pytest.approx(0.893, abs=0.012)
    assert 0.937 - 3 * found.error < found.student_t < 0.948 + 3 * found.error


def test_many_clusters_need_no_correction():
    found = simulate_coverage(Design((4,) * 60, 1.0, 1.0), trials=2_000, resamples=500)
    assert found.percentile == pytest.approx(0.945, abs=0.02)
    assert found.student_t == pytest.approx(0.95, abs=0.02)


def test_variance_components_are_recovered():
    rng = np.random.default_rng(1)
    sizes = rng.integers(20, 60, 400)
    names = np.repeat([f"d{i:03d}" for i in range(400)], sizes)
    values = np.repeat(rng.normal(0, 2.0, 400), sizes) + rng.normal(0, 0.5, sizes.sum())
    found = matched_design(values, names)
    assert found.sizes == tuple(sizes)
    assert found.between == pytest.approx(2.0, rel=0.1)
    assert found.within == pytest.approx(0.5, rel=0.05)
