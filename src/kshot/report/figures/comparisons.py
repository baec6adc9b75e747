"""Methods against each other: bars, shots, strata, probes. A figure, or the sentence that says why there is none."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kshot.report.context import Context, Probed
from kshot.report.figures.style import COLOURS, DATASET_COLOURS, MARKERS, label_ends, line_style, new_figure
from kshot.report.notes import HOW_TO_PROBE, draws_in_words
from kshot.report.slices import CLAP, JS, LOO, LPP, ORACLE, ZERO_SHOT, focus, in_stratum, primary, single
from kshot.report.table import interval
from kshot.report.tables.encoders import FINDINGS, LEAST_STRATA, STRENGTH_SHOTS, minus_oracle, strengths
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.correlation import spearman
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of the paper's Fig. 4; more lines than MOST_LINES in a panel are not told apart by eye.
LINES = (ORACLE, ZERO_SHOT, CLAP, LOO, LPP, JS)
MOST_LINES = 6
REFERENCE = {"color": "#888888", "linestyle": "--"}
# Inches of a letter of a label.
LETTER_WIDTH = 0.058
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
    figure, (axis,) = new_figure(5.2, 1.1 + 0.2 * len(order))
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
        axis.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    axis.set_ylim(-0.6, len(order) - 0.4)
    axis.grid(visible=False, axis="y")
    absent = [panel.titles[m] for m in panel.methods if m not in means]
    without = f"Not in every cell: {', '.join(absent)}." if absent else ""
    cut = "The axis does not start at zero. " if left else ""
    axis.set_xlabel(f"mean accuracy (%), K ≥ 4, tier {focus(panel).tier}, {len(late)} cells")
    figure.supxlabel(textwrap.fill(cut + without, 85), fontsize=7)
    return figure


def accuracy_by_shots(panel: Panel, context: Context) -> "Figure | str":
    """Accuracy against shots for every dataset on one backbone: the paper's few lines, and the reader's own head."""
    shown = single(panel)
    names = shown.names("dataset")
    if not names:
        return "no cell of the primary tier has text"
    methods = [m for m in (*context.own, *LINES) if np.isfinite(shown.column(m)).any()][:MOST_LINES]
    if not methods:
        return f"none of {', '.join(LINES)} has a result in the primary tier"
    wide = min(4, len(names))
    tall = math.ceil(len(names) / wide)
    figure, grid = new_figure(1.9 * wide + _label_width(panel, methods), 1.7 * tall + 0.5, tall, wide)
    for axis, name in zip(grid, names, strict=False):
        cells = shown.where(shown.dataset == name)
        at = {int(k): cells.where(cells.shots == k) for k in np.unique(cells.shots)}
        _lines(panel, axis, {m: {k: float(part.column(m).mean()) for k, part in at.items()} for m in methods})
        axis.set_title(name)
    for axis in grid[wide - 1 : len(names) : wide]:
        label_ends(axis)
    for axis in grid[len(names) :]:
        axis.set_visible(False)
    where = f"{focus(panel).backbone}, tier {focus(panel).tier}, means over {draws_in_words(shown)}"
    figure.supxlabel(f"shots per class\n{where}", fontsize=8)
    figure.supylabel("accuracy (%)", fontsize=8)
    return figure


def other_heads(panel: Panel, context: Context) -> "Figure | str":
    """The leaderboard's means by shots of the heads that `accuracy_by_shots` has no room for, few to a panel."""
    board = leaderboard(primary(panel))
    by_shots = {p.method: p.by_shots for p in (*board.ranked, *board.transductive, *board.reference_points)}
    others = [m for m in by_shots if m not in LINES and np.isfinite(list(by_shots[m].values())).any()]
    if not others:
        return "accuracy_by_shots draws every head of these records"
    groups = [others[start : start + MOST_LINES - 1] for start in range(0, len(others), MOST_LINES - 1)]
    wide = min(3, len(groups))
    tall = math.ceil(len(groups) / wide)
    figure, grid = new_figure(wide * (2.0 + _label_width(panel, others)), 2.0 * tall + 0.5, tall, wide, sharey=True)
    for axis, group in zip(grid, groups, strict=False):
        _lines(panel, axis, {m: by_shots[m] for m in (*group, ORACLE) if m in by_shots})
    for axis in grid[: len(groups)]:
        label_ends(axis)
    for axis in grid[len(groups) :]:
        axis.set_visible(False)
    figure.supxlabel(f"shots per class\ntier {focus(panel).tier}, means over {board.cells} cells", fontsize=8)
    figure.supylabel("accuracy (%)", fontsize=8)
    return figure


def _lines(panel: Panel, axis: "Axes", means: Mapping[str, Mapping[int, float]]) -> None:
    """One line a method against shots; hollow marks for those that look at more than text and shots."""
    free, drawn = panel.free_methods(), set()
    # The first methods are drawn last, on top.
    for index, method in reversed(list(enumerate(means))):
        points = {k: value for k, value in means[method].items() if value == value}
        if not points:
            continue
        style: dict[str, Any] = line_style(index) | (REFERENCE if method == ORACLE else {})
        filled = style["color"] if method in free else "white"
        axis.plot(list(points), list(points.values()), markerfacecolor=filled, label=panel.titles[method], **style)
        drawn |= points.keys()
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(drawn), [str(k) for k in sorted(drawn)])
    axis.minorticks_off()


def _label_width(panel: Panel, methods: Sequence[str]) -> float:
    return 0.2 + LETTER_WIDTH * max(len(panel.titles[method]) for method in methods)


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


def text_strength(panel: Panel, context: Context) -> "Figure | str":
    """Each finding minus the oracle ratio against the strength of text, a point a stratum: its table, drawn."""
    shown, methods = primary(panel), [m for m in FINDINGS if m in panel.methods]
    strength = strengths(shown)
    if len(strength) < LEAST_STRATA or len(shown.names("backbone")) < 2 or not methods:
        return "it needs zero-shot, NCM and the oracle ratio on three strata of two backbones"
    later = shown.where(shown.shots >= STRENGTH_SHOTS).with_all((ORACLE, *methods))
    lines = np.array([minus_oracle(in_stratum(later, *place), methods) for place in strength])
    figure, (axis,) = new_figure(4.2, 2.8)
    for index, (method, values) in enumerate(zip(methods, lines.T, strict=True)):
        style = line_style(index) | {"linestyle": "none"}
        axis.plot(list(strength.values()), values, label=panel.titles[method], **style)
    axis.axhline(0, color="#888888", linewidth=0.8)
    axis.set(
        xlabel=f"zero-shot − NCM at K = {STRENGTH_SHOTS} (points)",
        ylabel="minus the oracle ratio (points)",
        title=f"{len(strength)} strata, K ≥ {STRENGTH_SHOTS}",
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
