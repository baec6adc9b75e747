"""Classes that were not trained: beside those that were, and on their own."""

import numpy as np
from jaxtyping import Float

from kshot.report.context import Context
from kshot.report.focus import INTERVALS, ZERO_SHOT, focus, provenance, sentences
from kshot.report.numbers import interval, number
from kshot.report.table import Table, absent_table
from kshot.report.tables.shot_profiles import same_draws
from kshot.stats.bootstrap import cluster_means
from kshot.stats.panel import Panel
from kshot.types import HALVES, Array


def unseen_table(panel: Panel, context: Context) -> Table:
    """Where some classes have no shots: the accuracy on pictures of the others, and on theirs."""
    key, title = "unseen", "Classes without shots beside classes with shots: accuracy (%)"
    if "unseen" not in context.measured:
        absent = 'no class is without shots, or no answers are kept; a study asks for it with profiles = ["missing"].'
        return absent_table(key, title, absent)
    seen, unseen = (
        part.where((part.tier == focus(panel).tier) & (part.profile == "missing"))
        for part in (context.measured["seen"], context.measured["unseen"])
    )
    told = "All classes are asked for at once; the text of those without shots is known."
    return _both(key, title, ("with shots", "without shots"), seen, unseen, told)


def base_to_new_table(panel: Panel, context: Context) -> Table:
    """Either half of the classes on its own, after shots of the first."""
    key, title = "base_to_new", "Base to new: accuracy (%)"
    there = set(panel.profile.tolist())
    if not there.issuperset(HALVES):
        absent = 'these records do not go from base to new; a study asks for it with profiles = ["base", "new"].'
        return absent_table(key, title, absent)
    parts = same_draws(panel.where(panel.tier == focus(panel).tier), list(HALVES))
    told = "; ".join(f"{name}: {what}" for name, what in HALVES.items())
    return _both(key, title, tuple(HALVES), parts["base"], parts["new"], f"{told}.")


def _both(key: str, title: str, names: tuple[str, ...], trained: Panel, untrained: Panel, told: str) -> Table:
    """Two means, their harmonic mean within each cell, and what training changes on classes that were not trained."""
    recorded = np.any(trained.row >= 0, axis=0).tolist()
    there = [m for m, any_cell in zip(trained.methods, recorded, strict=True) if any_cell]
    inductive = [m for m in there if m not in trained.transductive]
    left, right = (np.stack([part.column(m) for m in inductive], axis=1) for part in (trained, untrained))
    means = dict(zip(inductive, _means(left, right), strict=True))
    apart = right - untrained.column(ZERO_SHOT)[:, None]
    # A method that is undefined in some cells is not compared over fewer.
    apart[:, ~np.isfinite(apart).all(axis=0)] = np.nan
    gains = dict(zip(inductive, cluster_means(apart, untrained.dataset), strict=True))
    free = set(trained.free_methods())
    order = sorted(inductive, key=lambda m: (m not in free, *(-np.nan_to_num(means[m][[2, 0]])), m))
    return Table(
        key=key,
        title=title,
        columns=("method", *names, "harmonic mean", f"{names[1]} − zero-shot"),
        rows=tuple((trained.titles[m], *(number(value) for value in means[m]), interval(gains[m])) for m in order),
        caption=sentences(
            f"{told} {len(left)} draws, tier {focus(trained).tier}; the harmonic mean is taken within each of them. –: "
            "undefined. Below the rule: reference points.",
            INTERVALS,
            provenance(trained),
        ),
        rule=len([m for m in order if m in free]),
    )


def _means(left: Float[Array, "n m"], right: Float[Array, "n m"]) -> Float[Array, "m 3"]:
    harmonic = 2 * left * right / np.maximum(left + right, np.finfo(float).tiny)
    return np.stack([part.mean(axis=0) for part in (left, right, harmonic)], axis=1)
