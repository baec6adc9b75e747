"""Every figure of a report; one that cannot be drawn says why instead."""

from pathlib import Path

from kshot.report.context import Context
from kshot.report.figures import blending_curves, comparisons
from kshot.report.figures.style import styled, write_figure
from kshot.report.slices import of_one_profile
from kshot.stats.panel import Panel

FIGURES = {
    "geometry": blending_curves.geometry,
    "accuracy_and_error": blending_curves.accuracy_and_error,
    "bars": comparisons.bars,
    "risk_profiles": blending_curves.risk_profiles,
    "estimated_ratio": blending_curves.estimated_ratio,
    "accuracy_by_shots": comparisons.accuracy_by_shots,
    "headroom": comparisons.headroom_against_surplus,
    "offset_and_per_class": comparisons.offset_and_per_class,
}


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
    return written, missing
