"""What the offset costs, and what one ratio per class is worth."""

from typing import TYPE_CHECKING

import numpy as np

from kshot.report.context import Context, Probed
from kshot.report.figures.style import COLOURS, new_figure
from kshot.report.notes import HOW_TO_PROBE
from kshot.report.slices import CLAP, JS, ORACLE, focus, primary
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRANSLATION = "translation.a = "


def offset_and_per_class(panel: Panel, context: Context) -> "Figure | str":
    """Accuracy as every prototype moves along the offset, and the per-class oracle in and out of sample (Fig. 5)."""
    shown, probed = primary(panel), context.probed.of(panel)
    steps = sorted(float(name.removeprefix(TRANSLATION)) for name in probed.values if name.startswith(TRANSLATION))
    if not steps:
        return f"no probes beside these records: {HOW_TO_PROBE}"
    figure, axes = new_figure(6.4, 2.5, 1, 2)
    _translation(axes[0, 0], shown, probed, focus(panel).tier, steps)
    _per_class(axes[0, 1], shown, probed, focus(panel).tier)
    return figure


def _translation(axis: "Axes", shown: Panel, probed: Probed, tier: str, steps: list[float]) -> None:
    pooled = [probed.pooled(f"{TRANSLATION}{step:+.2f}", tier) for step in steps]
    means = np.array([estimate.mean for estimate in pooled])
    low, high = (np.array([_end(estimate, end) for estimate in pooled]) for end in ("low", "high"))
    axis.fill_between(steps, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
    axis.plot(steps, means, color=COLOURS[0], marker="o")
    apart = shown.column(JS, "ratio") - shown.column(ORACLE, "ratio")
    if np.isfinite(apart).any():
        moved = float(np.nanmean(apart))
        label = f"from oracle to James–Stein, a = {-moved:.2f}"
        axis.axvspan(-moved, 0, color=COLOURS[7], alpha=0.12, linewidth=0, label=label)
        axis.legend(loc="lower center")
    axis.axhline(0, color="#888888", linewidth=0.8)
    axis.set_xlabel("prototypes moved by a times the offset")
    axis.set_ylabel("change of accuracy (points)")
    axis.set_title("A: at the oracle ratio")


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
    axis.set_xlabel("points over one ratio for all classes")
    axis.set_title("B: one ratio per class")


def _end(estimate: Estimate, end: str) -> float:
    value = getattr(estimate, end)
    return estimate.mean if value is None else value
