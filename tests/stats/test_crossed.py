"""The interval over draws and test pictures: by every resample, by hand, by a library, and by how often it covers."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from kshot.stats.bootstrap import cluster_mean, simultaneous
from kshot.stats.crossed import crossed_variance, hits_of, on_these_datasets
from kshot.stats.leaderboard import paired
from kshot.stats.metrics import METRICS
from kshot.stats.panel import panel
from synthetic_records import as_table, synthetic_rows


def spread(differences, draws, pictures):
    """Variance of the mean over every resample of the chosen factors."""
    rows = product(range(len(differences)), repeat=len(differences)) if draws else [range(len(differences))]
    columns = list(product(range(differences.shape[1]), repeat=differences.shape[1])) if pictures else [slice(None)]
    return np.var([differences[list(row)][:, column].mean() for row in rows for column in columns])


@pytest.mark.parametrize("seed", range(6))
def test_the_variance_is_that_of_every_resample_with_the_noise_counted_once(seed):
    rng = np.random.default_rng(seed)
    differences = rng.integers(-1, 2, (3, 4)) + 2 * rng.integers(0, 2, (3, 1)) + rng.integers(-1, 3, (1, 4))
    by_draw, by_picture = spread(differences, True, False) * 3 / 2, spread(differences, False, True) * 4 / 3
    both = spread(differences, True, True)
    noise = (both - by_draw * 2 / 3 - by_picture * 3 / 4) * 12 / 6
    wanted = noise + max(by_draw - noise, 0) + max(by_picture - noise, 0)
    assert crossed_variance(differences, np.arange(3))[0] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_both_numbers_are_those_of_a_two_way_analysis_of_variance(seed):
    """Sums of squares row by row; what adds nothing to the variance is not uncertain. A draw is its cells' mean."""
    rng = np.random.default_rng(seed)
    S, n = 4, 2 + seed
    by_draw, by_picture = np.repeat(rng.normal(size=(S, 1)), 2, axis=0), (seed % 3) * rng.normal(size=(1, n))
    cells = rng.normal(size=(2 * S, n)) + by_draw + by_picture
    table = cells.reshape(S, 2, n).mean(axis=1)
    grand, draws, pictures = table.mean(), table.mean(axis=1), table.mean(axis=0)
    A = n * sum((x - grand) ** 2 for x in draws) / (S - 1)
    B = S * sum((x - grand) ** 2 for x in pictures) / (n - 1)
    left = sum((table[i, j] - draws[i] - pictures[j] + grand) ** 2 for i in range(S) for j in range(n))
    E = left / ((S - 1) * (n - 1))
    uncertain = E**2 / ((S - 1) * (n - 1))
    uncertain += (A**2 / (S - 1) if A > E else 0) + (B**2 / (n - 1) if B > E else 0)
    variance, square = crossed_variance(cells, np.repeat(np.arange(S), 2))
    assert variance == pytest.approx((E + max(A - E, 0) + max(B - E, 0)) / (S * n), rel=1e-4)
    assert square == pytest.approx(uncertain / (S * n) ** 2, rel=1e-4)


def test_one_picture_or_two_draws_are_too_few():
    assert crossed_variance(np.ones((3, 1)), np.arange(3)) is None
    assert crossed_variance(np.ones((2, 5)), np.arange(2)) is None
    assert crossed_variance(np.ones((3, 2)), np.arange(3)) == (0, 0)


def test_heads_that_never_differ_have_an_interval_of_no_width():
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (4,), range(3), ("clap", "lpp"))
    same = [np.ones(7, np.int8)] * 3
    found = on_these_datasets(panel(as_table(rows)), same, same)
    assert (found.mean, found.low, found.high, found.freedom) == (0, 0, 0, 1)


def test_shots_that_are_the_whole_pool_leave_the_pictures_alone():
    one = np.random.default_rng(0).integers(-1, 2, 300)
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (16,), range(5), ("clap", "lpp"))
    first, second = [(one > 0).astype(np.int8)] * 5, [(one < 0).astype(np.int8)] * 5
    found = on_these_datasets(panel(as_table(rows)), first, second)
    low, high = ttest_1samp(100 * one, 0).confidence_interval()
    assert (found.mean, found.low, found.high) == pytest.approx((100 * one.mean(), low, high), rel=1e-5)


def test_datasets_are_weighed_by_their_cells():
    """Twice as many cells on the first: variances add with the squares of 2/3 and 1/3."""
    options = {"tiers": ("dataset",), "seeds": (0, 1, 2, 3), "methods": ("clap", "zero_shot")}
    rows = synthetic_rows(("alpha",), ("RN50", "ViT-B-16"), **options) + synthetic_rows(("beta",), ("RN50",), **options)
    whole = panel(as_table(rows))
    both, one, two = (paired(part, "clap", "zero_shot") for part in (whole, *(of(whole, n) for n in ("alpha", "beta"))))
    assert both.error == pytest.approx(np.hypot(2 / 3 * one.error, 1 / 3 * two.error))
    assert both.mean == pytest.approx(
        cluster_mean(whole.column("clap") - whole.column("zero_shot"), whole.dataset).mean
    )
    assert both.n == one.n + two.n
    assert both.low < one.mean * 2 / 3 + two.mean / 3 < both.high


def test_datasets_of_different_weight_share_their_degrees_of_freedom():
    """Satterthwaite's rule over datasets: fourth powers of the shares."""
    rng = np.random.default_rng(3)
    sizes = {"alpha": (60, ("RN50", "ViT-B-16")), "beta": (40, ("RN50",))}
    rows = []
    for name, (_, backbones) in sizes.items():
        rows += synthetic_rows((name,), backbones, ("dataset",), (4,), range(4), ("clap", "lpp"))
    whole = panel(as_table(rows))
    first = [rng.integers(0, 2, sizes[name][0]).astype(np.int8) for name in whole.dataset.tolist()]
    second = [np.zeros_like(hits) for hits in first]
    found = on_these_datasets(whole, first, second)
    parts = []
    for name in sizes:
        here = np.flatnonzero(whole.dataset == name)
        parts.append((len(here) / len(first), *crossed_variance(np.stack([first[i] for i in here]), whole.seed[here])))
    variance = sum(share**2 * own for share, own, _ in parts)
    assert found.error == pytest.approx(100 * np.sqrt(variance))
    assert found.freedom == pytest.approx(variance**2 / sum(share**4 * square for share, _, square in parts))


@pytest.mark.parametrize(
    ("differences", "below_one"), [([[1, 0], [0, -1], [1, 0]], False), ([[0, 1], [-1, 1], [0, 0]], True)]
)
def test_degrees_of_freedom_follow_satterthwaite_down_to_one(differences, below_one):
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (4,), range(3), ("clap", "lpp"))
    differences = np.array(differences)
    variance, square = crossed_variance(differences, np.arange(3))
    assert (variance**2 / square < 1) == below_one
    found = on_these_datasets(panel(as_table(rows)), list(differences), list(np.zeros_like(differences)))
    assert found.freedom == pytest.approx(max(1, variance**2 / square))
    assert found.freedom < 2


def test_cells_of_one_dataset_with_other_test_pictures_have_no_such_interval():
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (4,), range(3), ("clap", "lpp"))
    hits = [np.ones(size, np.int8) for size in (5, 6, 5)]
    assert on_these_datasets(panel(as_table(rows)), hits, hits) is None


def of(whole, dataset):
    return whole.where(whole.dataset == dataset)


def test_it_stands_alone_beside_or_not_at_all_by_the_number_of_datasets():
    names = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
    rows = synthetic_rows(names, ("RN50",), ("dataset",), (2, 4), (0, 1, 2), ("clap", "zero_shot"))
    for count in range(1, 7):
        part = panel(as_table([row for row in rows if row["dataset"] in names[:count]]))
        found = paired(part, "clap", "zero_shot")
        here = on_these_datasets(part, hits_of(part, "clap"), hits_of(part, "zero_shot"))
        over = cluster_mean(part.column("clap") - part.column("zero_shot"), part.dataset)
        assert (over.low is None) == (count < 3)
        assert (found.low, found.high) == ((here if count < 3 else over).low, (here if count < 3 else over).high)
        assert found.beside == (replace(here, mean=found.mean) if 3 <= count <= 5 else None)
        assert found.mean == pytest.approx(here.mean)
        assert str(found).endswith("interval over draws and pictures") == (count < 3)
        beside = f"over draws and pictures [{here.low:+.2f}, {here.high:+.2f}]"
        assert (beside in repr(found)) == (3 <= count <= 5)
        assert ("draws and pictures" in found._repr_html_()) == (count <= 5)
        wider = simultaneous({"a": found, "b": found})["a"]
        assert wider.low < found.low < found.high < wider.high


def test_hits_of_accuracy_say_nothing_about_another_metric():
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (4,), range(3), ("clap", "zero_shot"))
    found = panel(as_table(rows)).by_metric(METRICS["nll"], np.arange(len(rows)) / 7)
    assert paired(found, "clap", "zero_shot").low is None


def test_two_draws_give_none():
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (2, 4), (0, 1), ("clap", "zero_shot"))
    found = paired(panel(as_table(rows)), "clap", "zero_shot")
    assert found.low is None
    assert found.n == 4


@pytest.mark.parametrize("draws", [0.0, 0.3])
def test_it_covers(draws):
    from tools.one_dataset import Design, covered

    assert 0.92 <= covered(Design(draws=draws, pictures=200), studies=600) <= 0.985
