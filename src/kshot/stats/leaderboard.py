"""Who is best, by how much, and how sure that is."""

from dataclasses import dataclass

import numpy as np

from kshot.stats.bootstrap import Estimate, cluster_mean, cluster_means
from kshot.stats.panel import Panel


@dataclass(frozen=True)
class Placing:
    """One method's row: mean accuracy at each K, the mean of the columns K ≥ 2, and the distance to the leader."""

    method: str
    by_shots: dict[int, float]
    mean: float
    behind_leader: Estimate | None

    @property
    def tied(self) -> bool:
        """The interval of the distance to the leader reaches zero, so the data do not tell them apart."""
        behind = self.behind_leader
        return behind is not None and behind.low is not None and not behind.excludes_zero


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


def paired(panel: Panel, method: str, baseline: str) -> Estimate:
    """Mean within-cell difference, method minus baseline, over the cells where both exist."""
    return cluster_mean(panel.column(method) - panel.column(baseline), panel.dataset)


def paired_with(panel: Panel, methods: list[str], baseline: str) -> dict[str, Estimate]:
    """The same for several methods in one pass of the bootstrap."""
    if not methods:
        return {}
    differences = np.stack([panel.column(m) - panel.column(baseline) for m in methods], axis=1)
    return dict(zip(methods, cluster_means(differences, panel.dataset), strict=True))


def leaderboard(panel: Panel) -> Leaderboard:
    """Means by K over the combinations present at every K."""
    guarded = panel.where(panel.present_at_every_shot_count())
    shots = tuple(int(k) for k in np.unique(guarded.shots))
    means = {method: _by_shots(guarded, method, shots) for method in guarded.methods}
    overall = {method: _overall(values) for method, values in means.items()}
    order = sorted(guarded.methods, key=lambda m: (-np.nan_to_num(overall[m], nan=-1), m))
    free = set(guarded.free_methods())
    ranked = [method for method in order if method in free]
    leader = ranked[0] if ranked else None
    later = guarded.where(guarded.shots >= 2)
    behind = paired_with(later, [m for m in order if m != leader], leader) if leader is not None else {}

    def placing(method: str) -> Placing:
        return Placing(method, means[method], overall[method], behind.get(method))

    return Leaderboard(
        shots=shots,
        ranked=tuple(placing(method) for method in ranked),
        transductive=tuple(placing(m) for m in order if m in guarded.transductive),
        reference_points=tuple(placing(m) for m in order if m in guarded.reference_points),
        combinations=len(np.unique(guarded.combinations())) if len(guarded.shots) else 0,
        datasets=len(np.unique(guarded.dataset)),
        cells=len(guarded.shots),
    )


def _by_shots(panel: Panel, method: str, shots: tuple[int, ...]) -> dict[int, float]:
    """A column counts only where the method exists in every cell of it: a mean over fewer is another mean."""
    column = panel.column(method)
    return {k: float(column[panel.shots == k].mean()) for k in shots}


def _overall(by_shots: dict[int, float]) -> float:
    later = [value for k, value in by_shots.items() if k >= 2]
    return float(np.mean(later)) if later else float("nan")
