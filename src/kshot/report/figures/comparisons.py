"""Methods against each other: bars, shots, strata, probes. A figure, or the sentence that says why there is none."""

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from kshot.report.context import Context, Probed
from kshot.report.figures.style import COLOURS, DATASET_COLOURS, MARKERS, line_style, new_figure
from kshot.report.notes import HOW_TO_PROBE
from kshot.report.slices import CLAP, JS, ORACLE, focus, in_stratum, primary, story_first, strata_to_draw
from kshot.report.table import interval
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.correlation import spearman
from kshot.stats.leaderboard import paired
from kshot.stats.panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches of a legend's line, of a letter in it and of the mark before it; of the least figure, which a dozen lines fit.
LINE_HEIGHT, LETTER_WIDTH, MARK_WIDTH = 0.155, 0.055, 0.55
LEAST_WIDTH, LEAST_HEIGHT, MOST_COLUMNS = 3.0, 2.1, 2
TRANSLATION = "translation.a = "


def bars(panel: Panel, context: Context) -> "Figure | str":
    """Mean accuracy at K ≥ 4 against the oracle line, over the combinations present at every K; methods that lack one
    of these cells are named and have no bar."""
    balanced = primary(panel)
    balanced = balanced.where(balanced.present_at_every_shot_count())
    late = balanced.where(balanced.shots >= 4)
    everywhere = [m for m in panel.methods if np.isfinite(late.column(m)).all()]
    if not len(late) or not everywhere:
        return "no method exists in every cell with K ≥ 4"
    if everywhere == [ORACLE]:
        return "no method but the oracle ratio exists in every cell with K ≥ 4"
    means = {m: float(late.column(m).mean()) for m in everywhere}
    order = sorted((m for m in means if m != ORACLE), key=lambda m: means[m])
    figure, (axis,) = new_figure(4.6, 0.8 + 0.22 * len(order))
    low, high = min(means.values()), max(means.values())
    left = max(low - 0.3 * (high - low) - 1, 0)
    axis.set_xlim(left, high + 0.15 * (high - low) + 1)
    for place, method in enumerate(order):
        reference = method not in panel.free_methods()
        colour = COLOURS[7] if reference else COLOURS[0]
        axis.barh(place, means[method], color="white" if reference else colour, edgecolor=colour)
        # At the foot of the bar, where the oracle's line never crosses the number.
        ink = {"color": colour if reference else "white", "va": "center", "ha": "left"}
        axis.annotate(f"{means[method]:.1f}", (left, place), (4, 0), textcoords="offset points", **ink)
    axis.set_yticks(range(len(order)), [panel.titles[m] for m in order])
    if ORACLE in means:
        axis.axvline(means[ORACLE], color=COLOURS[1], linestyle="--", label=f"oracle ratio {means[ORACLE]:.1f}")
        axis.legend(loc="lower right", bbox_to_anchor=(1, 1))
    axis.grid(visible=False, axis="y")
    absent = [panel.titles[m] for m in panel.methods if m not in means]
    without = f"not in every cell: {', '.join(absent)}" if absent else ""
    cut = "(the axis does not start at zero)\n" if left else ""
    axis.set_xlabel(f"mean accuracy (%), K ≥ 4, {len(late)} cells\n{cut}{textwrap.fill(without, 60)}")
    return figure


def accuracy_by_shots(panel: Panel, context: Context) -> "Figure | str":
    """Accuracy against shots for every dataset: primary tier, seed means, one backbone where all have it."""
    shown, drawn = primary(panel), strata_to_draw(panel)
    names = list(drawn)
    if not names:
        return "no cell of the primary tier has text"
    if not np.isfinite(shown.value).any():
        return "no method has a result in the primary tier"
    wide = min(4, len(names))
    tall = math.ceil(len(names) / wide)
    height = max(1.6 * tall + 0.5, LEAST_HEIGHT, len(panel.methods) * LINE_HEIGHT / MOST_COLUMNS + 0.2)
    columns = math.ceil(len(panel.methods) * LINE_HEIGHT / height)
    width = max(1.9 * wide, LEAST_WIDTH)
    legend_width = MARK_WIDTH + LETTER_WIDTH * max(map(len, panel.titles.values()))
    figure, grid = new_figure(width + legend_width * columns, height, tall, wide)
    order, free = story_first(panel, context.own), panel.free_methods()
    handles = {}
    for axis, name in zip(grid, names, strict=False):
        own = in_stratum(shown, name, drawn[name])
        shots = np.unique(own.shots)
        # The first methods are drawn last, on top.
        for index, method in reversed(list(enumerate(order))):
            means = np.array([own.column(method)[own.shots == k].mean() for k in shots])
            known = np.isfinite(means)
            if not known.any():
                continue
            style = line_style(index)
            filled = style["color"] if method in free else "none"
            (handles[method],) = axis.plot(shots[known], means[known], markerfacecolor=filled, **style)
        axis.set_xscale("log", base=2)
        axis.set_xticks(shots, [str(k) for k in shots])
        axis.minorticks_off()
        axis.set_title(name if drawn[name] == focus(panel).backbone else f"{name}, {drawn[name]}")
    for axis in grid[len(names) :]:
        axis.set_visible(False)
    figure.supxlabel(
        f"shots per class ({focus(panel).backbone}, tier {focus(panel).tier}, means over seeds)",
        x=width / 2 / figure.get_figwidth(),
        fontsize=8,
    )
    figure.supylabel("accuracy (%)", fontsize=8)
    named = [method for method in order if method in handles]
    figure.legend(
        [handles[method] for method in named],
        [panel.titles[method] for method in named],
        loc="outside right center",
        ncols=columns,
        handlelength=3.2,
    )
    return figure


def headroom_against_surplus(panel: Panel, context: Context) -> "Figure | str":
    """The predicted headroom of each stratum against CLAP's measured surplus over the oracle ratio."""
    if not context.headroom:
        return f"headroom was not measured; {HOW_TO_PROBE}"
    if not {CLAP, ORACLE} <= set(panel.methods):
        return f"these records do not hold {CLAP} and {ORACLE}"
    shown = primary(panel)
    strata = sorted(context.headroom)
    surplus = np.array([paired(in_stratum(shown, *stratum), CLAP, ORACLE).mean for stratum in strata])
    predicted = np.array([context.headroom[s] for s in strata])
    names = np.array([d for d, _ in strata])
    figure, (axis,) = new_figure(3.6, 2.8)
    for index, name in enumerate(sorted(set(names.tolist()))):
        own = names == name
        colour, marker = DATASET_COLOURS[index % len(DATASET_COLOURS)], MARKERS[index % len(MARKERS)]
        axis.plot(predicted[own], surplus[own], marker, color=colour, label=name)
    axis.axhline(0, color="#888888", linewidth=0.8)
    axis.set(
        xlabel="predicted headroom (points)",
        ylabel="CLAP − oracle ratio (points)",
        title=f"Spearman {interval(spearman(predicted, surplus, names))}, {len(strata)} strata",
    )
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def offset_and_per_class(panel: Panel, context: Context) -> "Figure | str":
    """Accuracy as every prototype moves along the offset, and the per-class oracle in and out of sample (Fig. 5)."""
    shown, probed = primary(panel), context.probed.of(panel)
    steps = sorted(float(name.removeprefix(TRANSLATION)) for name in probed.values if name.startswith(TRANSLATION))
    if not steps:
        return f"no probes beside these records; {HOW_TO_PROBE}"
    figure, axes = new_figure(6.4, 2.5, 1, 2)
    _translation(axes[0], shown, probed, focus(panel).tier, steps)
    _per_class(axes[1], shown, probed, focus(panel).tier)
    return figure


def _translation(axis: "Axes", shown: Panel, probed: Probed, tier: str, steps: list[float]) -> None:
    pooled = [probed.pooled(f"{TRANSLATION}{step:+.2f}", tier) for step in steps]
    means = [estimate.mean for estimate in pooled]
    low = [estimate.mean if estimate.low is None else estimate.low for estimate in pooled]
    high = [estimate.mean if estimate.high is None else estimate.high for estimate in pooled]
    axis.fill_between(steps, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
    axis.plot(steps, means, color=COLOURS[0], marker="o")
    apart = shown.column(JS, "ratio") - shown.column(ORACLE, "ratio")
    if np.isfinite(apart).any():
        moved = float(np.nanmean(apart))
        label = f"from oracle to James–Stein, a = {-moved:.2f}"
        axis.axvspan(-moved, 0, color=COLOURS[7], alpha=0.12, linewidth=0, label=label)
        axis.legend(loc="lower center")
    axis.axhline(0, color="#888888", linewidth=0.8)
    axis.set(
        xlabel="prototypes moved by a times the offset",
        ylabel="change of accuracy (points)",
        title="A: at the oracle ratio",
    )


def _per_class(axis: "Axes", shown: Panel, probed: Probed, tier: str) -> None:
    honest = probed.along(shown, "per_class.accuracy on split halves")
    bars: dict[str, Estimate] = {
        "per class, in sample": probed.pooled("per_class.in sample", tier),
        "per class, other half": probed.pooled("per_class.split half", tier),
        "CLAP − per class, other half": cluster_mean(shown.column(CLAP) - honest, shown.dataset),
    }
    known = {name: estimate for name, estimate in bars.items() if estimate.n}
    for place, (name, estimate) in enumerate(known.items()):
        axis.barh(place, estimate.mean, color=COLOURS[place], label=name)
        if estimate.low is not None and estimate.high is not None:
            axis.plot([estimate.low, estimate.high], [place, place], color="black", linewidth=1)
    axis.set_yticks(range(len(known)), list(known))
    axis.invert_yaxis()
    axis.axvline(0, color="#888888", linewidth=0.8)
    axis.set(xlabel="points over one ratio for all classes", title="B: one ratio per class")
