"""Every figure of a report; one that cannot be drawn says why instead."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.errors import StudyError, unknown
from kshot.report.context import Context
from kshot.report.figures import blending_curves, comparisons
from kshot.report.figures.style import styled, write_figure
from kshot.report.slices import focus, of_one_profile, primary
from kshot.stats.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "geometry": blending_curves.geometry,
    "accuracy_and_error": blending_curves.accuracy_and_error,
    "bars": comparisons.bars,
    "risk_profiles": blending_curves.risk_profiles,
    "estimated_ratio": blending_curves.estimated_ratio,
    "accuracy_by_shots": comparisons.accuracy_by_shots,
    "other_heads": comparisons.other_heads,
    "headroom": comparisons.headroom_against_surplus,
    "text_strength": comparisons.text_strength,
    "offset_and_per_class": comparisons.offset_and_per_class,
}
# These show one backbone and are drawn again for each of the others.
OF_ONE_BACKBONE = ("geometry", "accuracy_and_error", "risk_profiles", "accuracy_by_shots")
# These look at features beside the records.
OF_FEATURES = ("geometry", "headroom")


def plot(panel: Panel, context: Context, name: str, backbone: str = "") -> "Figure":
    """One figure, with the style of all; of another backbone than the first where one is given."""
    if name not in FIGURES:
        raise StudyError(unknown("figure", name, FIGURES, "These are drawn from records."))
    if backbone and backbone not in panel.names("backbone"):
        raise StudyError(unknown("backbone", backbone, panel.names("backbone"), "These are in the records."))
    shown = of_one_profile(panel)
    with styled():
        drawn = FIGURES[name](shown.where(shown.backbone == backbone) if backbone else shown, context)
    if isinstance(drawn, str):
        raise StudyError(f"figure {name} cannot be drawn: {drawn}.")
    return drawn


def write_figures(panel: Panel, context: Context, folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Files written, and for the figures that are missing the reason."""
    written: list[Path] = []
    missing: dict[str, str] = {}
    shown = of_one_profile(panel)
    with styled():
        for name, draw in FIGURES.items():
            drawn = draw(shown, context)
            if isinstance(drawn, str):
                missing[name] = drawn
            else:
                written += write_figure(drawn, folder, name)
            for backbone in _others(shown) if name in OF_ONE_BACKBONE else ():
                again = draw(shown.where(shown.backbone == backbone), context)
                if not isinstance(again, str):
                    written += write_figure(again, folder, f"{name}-{re.sub(r'[^A-Za-z0-9._+-]+', '-', backbone)}")
    return written, missing


def _others(panel: Panel) -> list[str]:
    """The backbones of the primary tier beside that of the first figures."""
    return [name for name in primary(panel).names("backbone") if name != focus(panel).backbone]
