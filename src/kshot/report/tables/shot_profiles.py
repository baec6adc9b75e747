"""Uneven and missing shots: the same draws under every profile."""

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import over_datasets
from kshot.report.slices import ZERO_SHOT, focus
from kshot.report.table import Table, best_cells, content, interval, metric_cells, number
from kshot.stats.bootstrap import Estimate, cluster_means
from kshot.stats.leaderboard import best_first, counting
from kshot.stats.panel import Panel
from kshot.types import BALANCED, PROFILES, Array


def profiles(panel: Panel, context: Context) -> Table | str:
    """Means by profile and, paired within dataset, backbone, K and seed, what each differs from balanced shots."""
    shown = counting(panel.where((panel.tier == focus(panel).tier) & panel.has_text))
    names = [name for name in PROFILES if name in shown.names("profile")]
    if len(names) < 2 or BALANCED not in names:
        return "these records hold one profile only; a study asks for several with profiles = [...]."
    parts = _same_draws(shown, names)
    free = set(panel.free_methods())
    inductive = [m for m in panel.methods if m not in panel.transductive]
    means = {m: [float(parts[name].column(m).mean()) for name in names] for m in inductive}
    order = sorted(inductive, key=lambda m: (m not in free, best_first(panel.metric, means[m][0]), m))
    ranked = [m for m in order if m in free]
    balanced = _columns(parts[BALANCED], order)
    changes = [_where_complete(_columns(parts[name], order) - balanced, parts[BALANCED]) for name in names[1:]]
    meanings = "; ".join(f"{name}: {PROFILES[name]}" for name in names)
    return content(
        ("method", *names, *(f"{name} − {BALANCED}" for name in names[1:])),
        [
            (panel.titles[m], *metric_cells(panel.metric, means[m]), *map(interval, change))
            for m, *change in zip(order, *changes, strict=True)
        ],
        [
            f"{meanings}. The same {len(parts[BALANCED])} draws in every column, tier {focus(panel).tier}. –: the "
            "method is undefined in some of them. Below the rule: reference points.",
            over_datasets(parts[BALANCED]),
        ],
        rule=len(ranked),
        best=best_cells(panel.metric, np.array([means[m] for m in ranked]).T),
    )


def unseen(panel: Panel, context: Context) -> Table | str:
    """Where some classes have no shots: the accuracy on pictures of the others and on theirs, the harmonic mean of both
    within each cell, and what training changes on classes without shots."""
    if "unseen" not in context.measured:
        return 'no class is without shots, or no answers are kept; a study asks for it with profiles = ["missing"].'
    seen, unseen = (
        part.where((part.tier == focus(panel).tier) & (part.profile == "missing"))
        for part in (context.measured["seen"], context.measured["unseen"])
    )
    recorded = np.any(seen.row >= 0, axis=0)
    inductive = [m for m, there in zip(seen.methods, recorded, strict=True) if there and m not in seen.transductive]
    left, right = (_columns(part, inductive) for part in (seen, unseen))
    harmonic = 2 * left * right / np.maximum(left + right, np.finfo(float).tiny)
    means = dict(zip(inductive, np.stack([part.mean(axis=0) for part in (left, right, harmonic)], axis=1), strict=True))
    apart = right - unseen.column(ZERO_SHOT)[:, None]
    gains = dict(zip(inductive, _where_complete(apart, unseen), strict=True))
    free = set(seen.free_methods())
    order = sorted(inductive, key=lambda m: (m not in free, *(-np.nan_to_num(means[m][[2, 0]])), m))
    return content(
        ("method", "with shots", "without shots", "harmonic mean", "without shots − zero-shot"),
        [(seen.titles[m], *map(number, means[m]), interval(gains[m])) for m in order],
        [
            f"All classes are asked for at once; the text of those without shots is known. {len(left)} draws, tier "
            f"{focus(seen).tier}; the harmonic mean is taken within each of them. –: undefined. Below the rule: "
            "reference points.",
            over_datasets(seen),
        ],
        rule=len([m for m in order if m in free]),
    )


def _same_draws(panel: Panel, names: list[str]) -> dict[str, Panel]:
    """The cells that exist under every profile, in one order: a panel is sorted by its cells, their profile last."""
    keys = panel.cell_keys(("dataset", "backbone", "tier", "shots", "seed"))
    by_profile = ({key for key, own in zip(keys, panel.profile, strict=True) if own == name} for name in names)
    common = set.intersection(*by_profile)
    kept = panel.where(np.array([key in common for key in keys]))
    return {name: kept.where(kept.profile == name) for name in names}


def _columns(panel: Panel, methods: list[str]) -> Array:
    return np.stack([panel.column(m) for m in methods], axis=1)


def _where_complete(differences: Array, panel: Panel) -> list[Estimate]:
    """One estimate per column; a method that is undefined in some cells is not compared over fewer."""
    differences[:, ~np.isfinite(differences).all(axis=0)] = np.nan
    return cluster_means(differences, panel.dataset)
