"""The ratio in pictures: geometry, risk profiles, estimates. A figure, or the sentence that says why there is none."""

from typing import TYPE_CHECKING

import numpy as np

from kshot.report.context import Context
from kshot.report.figures.style import BLEND_COLOUR, COLOURS, IMAGE_COLOUR, TEXT_COLOUR, new_figure
from kshot.report.notes import draws_in_words
from kshot.report.slices import JS, LOO, ORACLE, ZERO_SHOT, focus, in_stratum, primary, single
from kshot.report.table import interval
from kshot.stats.bootstrap import finite_mean
from kshot.stats.correlation import spearman
from kshot.stats.panel import Panel
from kshot.stats.selected import ratio_curve, ratio_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The datasets of the paper's Fig. 1A, Fig. 1B and Fig. 2.
OFFSET_ON, OBJECTIVES_ON, PROFILES_ON = "Pets", "Food101", ("Aircraft", "DTD", "Pets")
# The choice for most accuracy, and the one for least prototype error.
OBJECTIVES = ((ORACLE, "*", "oracle", 9), ("mse_oracle", "^", "least prototype error", 6))
ON_MARKS = "marks: the accuracy of each choice, at its mean ratio"
MARKS = ((ORACLE, "*", "oracle", 9), (LOO, "D", "LOO", 5), (JS, "^", "James–Stein", 6))


def geometry(panel: Panel, context: Context) -> "Figure | str":
    """Image and text prototypes in the plane of their first principal directions, with the offset and the paths."""
    wanted = focus(panel)
    sketches = [s for s in context.sketches if (s.backbone, s.tier) == (wanted.backbone, wanted.tier)]
    if not sketches:
        return context.sketches_absent
    sketch = next((s for s in sketches if s.dataset == OFFSET_ON), sketches[0])
    figure, (axis,) = new_figure(5.6, 4.2)
    for text, image in zip(sketch.text, sketch.image, strict=True):
        axis.plot(*np.stack([text, image]).T, color="#999999", linestyle=":", linewidth=0.7, zorder=1)
    axis.plot(*sketch.text.T, "o", color=TEXT_COLOUR, markerfacecolor="white", label="text prototype")
    axis.plot(*sketch.image.T, "o", color=IMAGE_COLOUR, label="image mean (pool)")
    middle_text, middle_image = sketch.text.mean(axis=0), sketch.image.mean(axis=0)
    axis.annotate("", middle_text, middle_image, arrowprops={"arrowstyle": "->", "color": "black", "linewidth": 1.4})
    own = in_stratum(panel, sketch.dataset, sketch.backbone)
    own = own.where(own.tier == sketch.tier)
    share = finite_mean(own.share)
    known_share = f", {100 * share:.0f} % of the\nsquared distance" if share == share else ""
    axis.plot([], [], color="black", linewidth=1.4, label=f"common offset{known_share}")
    for method, marker, name, size in OBJECTIVES:
        ratio = finite_mean(own.column(method, "ratio"))
        if ratio == ratio:
            points = ratio * sketch.image + (1 - ratio) * sketch.text
            label = f"blend at {name} λ = {ratio:.2f}"
            axis.plot(*points.T, marker, color=BLEND_COLOUR, markersize=size / 2, label=label, alpha=0.8)
    shown = f"{len(sketch.names)} of {sketch.classes} classes"
    axis.set(
        title=f"{sketch.dataset}, {sketch.backbone}, {shown};\n{100 * sketch.explained:.0f} % of the variance",
        xlabel="first principal direction",
        ylabel="second principal direction",
    )
    axis.legend(loc="best")
    return figure


def accuracy_and_error(panel: Panel, context: Context) -> "Figure | str":
    """Accuracy and expected prototype error λ²v + (1−λ)²(d²−v) against the ratio at K = 4, on the paper's dataset or
    the strongest prior."""
    profiles = _profiles(panel)
    if not profiles:
        return _no_curves(panel)
    name, cells, curve = next((profile for profile in profiles if profile[0] == OBJECTIVES_ON), profiles[-1])
    figure, (axis,) = new_figure(4.6, 3.0)
    grid = ratio_grid(len(curve))
    axis.plot(grid, curve, color=COLOURS[0], label="accuracy")
    _marks(axis, cells)
    axis.set(xlabel=f"ratio λ ({ON_MARKS})", ylabel="accuracy (%)")
    v, d2 = finite_mean(cells.v), finite_mean(cells.d2)
    if v == v:
        error = grid**2 * v + (1 - grid) ** 2 * max(d2 - v, 0)
        other = axis.twinx()
        other.plot(grid, error, color=COLOURS[7], linestyle="--")
        other.set_ylabel("prototype error (dashed)")
        other.grid(visible=False)
        other.spines["right"].set_visible(True)
    axis.set_title(f"{name}, {_setting(panel, cells)}, mean over {draws_in_words(cells)}")
    figure.legend(handles=axis.get_legend_handles_labels()[0], loc="outside lower center", ncols=4)
    return figure


def risk_profiles(panel: Panel, context: Context) -> "Figure | str":
    """Accuracy against the ratio for a weak, a medium and a strong prior, with where each choice lands; on the paper's
    three datasets where the records hold them."""
    profiles = _profiles(panel)
    if not profiles:
        return _no_curves(panel)
    picked = [profile for profile in profiles if profile[0] in PROFILES_ON]
    if len(picked) < len(PROFILES_ON):
        picked = [profiles[i] for i in sorted({0, len(profiles) // 2, len(profiles) - 1})]
    figure, axes = new_figure(max(2.6 * len(picked), 4.2), 2.9, 1, len(picked))
    for axis, (name, cells, curve) in zip(axes, picked, strict=True):
        axis.plot(ratio_grid(len(curve)), curve, color=COLOURS[0], label="accuracy at one ratio")
        _marks(axis, cells)
        axis.set(title=f"{name}, {draws_in_words(cells)}", xlabel="ratio λ")
    axes[0].set_ylabel("accuracy (%)")
    figure.suptitle(f"{_setting(panel, picked[0][1])}\n{ON_MARKS}", fontsize=8)
    figure.legend(handles=axes[0].get_legend_handles_labels()[0], loc="outside lower center", ncols=4)
    return figure


def estimated_ratio(panel: Panel, context: Context) -> "Figure | str":
    """James–Stein and leave-one-out ratios against the oracle's, one point per cell."""
    shown = primary(panel)
    oracle = shown.column(ORACLE, "ratio")
    methods = [m for m in (JS, LOO) if np.isfinite(shown.column(m, "ratio") + oracle).any()]
    if not methods:
        return f"no cell holds both an estimated ratio and {ORACLE}"
    figure, (axis,) = new_figure(3.4, 3.8)
    axis.plot([0, 1], [0, 1], color="#888888", linestyle="--", linewidth=0.8)
    for method, colour, marker in zip(methods, (COLOURS[1], COLOURS[2]), "^o", strict=False):
        ratio = shown.column(method, "ratio")
        rho = spearman(ratio, oracle, shown.dataset)
        error = np.nanmean(np.abs(ratio - oracle))
        label = f"{panel.titles[method]}: mean |difference| {error:.2f}\nρ = {interval(rho)}"
        axis.plot(oracle, ratio, marker, color=colour, alpha=0.5, label=label, markeredgewidth=0)
    axis.set(xlabel="oracle ratio", ylabel="estimated ratio", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1))
    return figure


def _profiles(panel: Panel) -> list[tuple[str, Panel, np.ndarray]]:
    """(dataset, its cells, mean test curve) at K = 4 or the middle K, weakest prior first."""
    shown = single(panel)
    shots = np.unique(shown.shots)
    if ORACLE not in panel.methods or not len(shots):
        return []
    k = 4 if 4 in shots else int(shots[len(shots) // 2])
    profiles = []
    for name in shown.names("dataset"):
        cells = shown.where((shown.dataset == name) & (shown.shots == k)).with_all([method for method, *_ in MARKS])
        curves = [curve for chosen in cells.selected(ORACLE) if (curve := ratio_curve(chosen, "test"))]
        if curves:
            profiles.append((name, cells, 100 * np.mean(curves, axis=0)))
    with_prior = ZERO_SHOT in panel.methods
    return sorted(
        profiles, key=lambda profile: finite_mean(profile[1].column(ZERO_SHOT)) if with_prior else profile[2][0]
    )


def _marks(axis: "Axes", cells: Panel) -> None:
    """Each choice at its mean ratio and at the mean accuracy of its records: a mean over draws of the best of every
    curve lies above the best of the mean curve."""
    for (method, marker, name, size), colour in zip(MARKS, (COLOURS[1], COLOURS[2], COLOURS[3]), strict=True):
        ratio, accuracy = finite_mean(cells.column(method, "ratio")), finite_mean(cells.column(method))
        if ratio == ratio:
            axis.plot(ratio, accuracy, marker, color=colour, markersize=size, label=name)


def _setting(panel: Panel, cells: Panel) -> str:
    return f"{focus(panel).backbone}, tier {focus(panel).tier}, K = {cells.shots[0]}"


def _no_curves(panel: Panel) -> str:
    where = f"{focus(panel).backbone}, tier {focus(panel).tier}"
    return f"the records hold no accuracy curve: {ORACLE} did not run on {where}"
