"""Who is best, by how much, and how sure that is."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from kshot.stats.bootstrap import LEAST_DATASETS, UNKNOWN, Estimate, cluster_means
from kshot.stats.crossed import Hits, hits_of, on_these_datasets
from kshot.stats.metrics import ACCURACY, Metric
from kshot.stats.panel import Panel
from kshot.types import Array

# Up to so many, the interval over datasets is so wide that the one on these datasets stands beside it.
FEW_DATASETS = 5


@dataclass(frozen=True)
class Placing:
    """One method's row: its mean at each K, over the cells from K = 2 on, and its distance to the leader over these."""

    method: str
    by_shots: dict[int, float]
    mean: float
    behind_leader: Estimate | None


@dataclass(frozen=True)
class Leaderboard:
    """Ranked methods; then, never ranked, transductive methods and reference points."""

    shots: tuple[int, ...]
    ranked: tuple[Placing, ...]
    transductive: tuple[Placing, ...]
    reference_points: tuple[Placing, ...]
    combinations: int
    datasets: int
    cells: int

    @property
    def counted(self) -> str:
        """Which shots the means and the distances count."""
        return "K≥2" if any(k >= 2 for k in self.shots) else "K=1"


def paired(panel: Panel, method: str, baseline: str) -> Estimate:
    """Mean within-cell difference, method minus baseline, over the cells where both exist."""
    return paired_with(panel, [method], baseline)[method]


def paired_with(panel: Panel, methods: list[str], baseline: str) -> dict[str, Estimate]:
    """`paired` for several methods, in one pass of the bootstrap."""
    if not methods:
        return {}
    differences = np.stack([panel.column(m) - panel.column(baseline) for m in methods], axis=1)
    found = dict(zip(methods, cluster_means(differences, panel.dataset), strict=True))
    if panel.metric is not ACCURACY or max(one.G for one in found.values()) > FEW_DATASETS:
        return found
    reference = hits_of(panel, baseline)
    return {m: with_draws_and_pictures(one, panel, hits_of(panel, m), reference) for m, one in found.items()}


def with_draws_and_pictures(estimate: Estimate, panel: Panel, first: Hits, second: Hits) -> Estimate:
    """Add the interval over draws and pictures: beside the one over datasets if there are three to five of these, in
    its place if there are fewer."""
    here = on_these_datasets(panel, first, second) if 0 < estimate.G <= FEW_DATASETS else None
    if here is None or here.n != estimate.n:
        return estimate
    # Equal but for rounding: what is shown twice is one number.
    here = replace(here, mean=estimate.mean)
    return here if estimate.G < LEAST_DATASETS else replace(estimate, beside=here)


def side_by_side(panel: Panel, methods: list[str], baseline: str) -> dict[str, Estimate]:
    """Mean differences over the same cells, all that the baseline has; UNKNOWN for a method that lacks one of them."""
    common = panel.where(np.isfinite(panel.column(baseline)))
    everywhere = {m: bool(np.isfinite(common.column(m)).all()) for m in methods}
    paired = paired_with(common, [m for m in methods if everywhere[m]], baseline)
    return {m: paired.get(m, UNKNOWN) for m in methods}


def counting(panel: Panel) -> Panel:
    """Cells for means and differences: those with K ≥ 2, where every method exists; all if the records end at K = 1."""
    later = panel.shots >= 2
    return panel.where(later) if later.any() else panel


def leaderboard(panel: Panel) -> Leaderboard:
    """Means by K over the combinations present at every K."""
    guarded = panel.where(panel.present_at_every_shot_count())
    shots = tuple(int(k) for k in np.unique(guarded.shots))
    at = {k: guarded.where(guarded.shots == k) for k in shots}
    counted = counting(guarded)
    overall = {method: _mean(counted.column(method)) for method in guarded.methods}
    order = sorted(guarded.methods, key=lambda m: (best_first(panel.metric, overall[m]), m))
    free = set(guarded.free_methods())
    ranked = [method for method in order if method in free]
    leader = ranked[0] if ranked and np.isfinite(overall[ranked[0]]) else None
    behind = side_by_side(counted, [m for m in order if m != leader], leader) if leader is not None else {}

    def placing(method: str) -> Placing:
        by_shots = {k: _mean(cells.column(method)) for k, cells in at.items()}
        return Placing(method, by_shots, overall[method], behind.get(method))

    return Leaderboard(
        shots=shots,
        ranked=tuple(placing(method) for method in ranked),
        transductive=tuple(placing(m) for m in order if m in guarded.transductive),
        reference_points=tuple(placing(m) for m in order if m in guarded.reference_points),
        combinations=len(np.unique(guarded.combinations())),
        datasets=len(guarded.names("dataset")),
        cells=len(guarded),
    )


def best_first(metric: Metric, value: float) -> float:
    """A key that sorts the best value first and the unknown last."""
    return float("inf") if value != value else (value if metric.less_is_better else -value)


def _mean(values: Float[Array, " n"]) -> float:
    """Mean over the cells; NaN if the method lacks one, because a mean over fewer cells is another mean."""
    return float(values.mean()) if len(values) else float("nan")
