"""What uneven and missing shots cost: the same draws under every profile."""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import INTERVALS, focus, provenance, sentences
from kshot.report.numbers import best_of, interval, named, written
from kshot.report.table import Table, absent_table
from kshot.stats.bootstrap import Estimate, cluster_means
from kshot.stats.leaderboard import best_first, counting
from kshot.stats.panel import Panel
from kshot.types import BALANCED, PROFILES


def profiles_table(panel: Panel, context: Context) -> Table:
    """Means by profile and, paired within dataset, backbone, K and seed, what each differs from balanced shots."""
    shown = counting(panel.where((panel.tier == focus(panel).tier) & np.isfinite(panel.d2)))
    names = [name for name in PROFILES if name in set(shown.profile.tolist())]
    title = f"Uneven and missing shots: {named(panel.metric)} by profile"
    if len(names) < 2 or BALANCED not in names:
        return absent_table("profiles", title, _ONE)
    parts = same_draws(shown, names)
    free = set(panel.free_methods())
    inductive = [m for m in panel.methods if m not in panel.transductive]
    means = {m: [float(parts[name].column(m).mean()) for name in names] for m in inductive}
    order = sorted(inductive, key=lambda m: (m not in free, best_first(panel.metric, means[m][0]), m))
    ranked = [m for m in order if m in free]
    columns = np.array([means[m] for m in ranked]).T
    best = {
        (int(np.flatnonzero(column == best_of(panel.metric, column))[0]), 1 + j)
        for j, column in enumerate(columns)
        if np.isfinite(column).any()
    }
    differences = {name: _from_balanced(parts, name, order) for name in names[1:]}
    told = "; ".join(f"{name}: {PROFILES[name]}" for name in names)
    return Table(
        key="profiles",
        title=title,
        columns=("method", *names, *(f"{name} − {BALANCED}" for name in names[1:])),
        rows=tuple(
            (panel.titles[m], *written(panel.metric, means[m]), *(interval(differences[name][m]) for name in names[1:]))
            for m in order
        ),
        caption=sentences(
            f"{told}. The same {len(parts[BALANCED].shots)} draws in every column, tier {focus(panel).tier}. –: the "
            "method is undefined in some of them. Below the rule: reference points.",
            INTERVALS,
            provenance(panel),
        ),
        rule=len(ranked),
        best=frozenset(best),
    )


_ONE = "these records hold one profile only; a study asks for several with profiles = [...]."


def same_draws(panel: Panel, names: list[str]) -> dict[str, Panel]:
    """The cells that exist under every profile, in one order."""
    axes = (panel.dataset, panel.backbone, panel.tier, panel.shots, panel.seed)
    keys = list(zip(*(axis.tolist() for axis in axes), strict=True))
    common = set.intersection(
        *({key for key, own in zip(keys, panel.profile, strict=True) if own == name} for name in names)
    )
    kept = panel.where(np.array([key in common for key in keys]))
    # A panel is sorted by its cells, whose profile comes last.
    return {name: kept.where(kept.profile == name) for name in names}


def _from_balanced(parts: dict[str, Panel], name: str, methods: list[str]) -> dict[str, Estimate]:
    balanced = parts[BALANCED]
    apart = np.stack([parts[name].column(m) - balanced.column(m) for m in methods], axis=1)
    complete = np.isfinite(apart).all(axis=0)
    apart[:, ~complete] = np.nan
    return dict(zip(methods, cluster_means(apart, balanced.dataset), strict=True))
