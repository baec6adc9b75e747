"""Every figure of a report; one that cannot be drawn says why instead."""

from pathlib import Path

from kshot.report.context import Context
from kshot.report.figures import comparisons, ratios
from kshot.report.figures.style import styled, write_figure
from kshot.stats.panel import Panel

FIGURES = {
    "geometry": ratios.geometry,
    "accuracy_and_error": ratios.accuracy_and_error,
    "bars": comparisons.bars,
    "risk_profiles": ratios.risk_profiles,
    "estimated_ratio": ratios.estimated_ratio,
    "accuracy_by_shots": comparisons.accuracy_by_shots,
    "headroom": comparisons.headroom,
}


def write_figures(panel: Panel, context: Context, folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Files written, and for the figures that are missing the reason."""
    written: list[Path] = []
    missing: dict[str, str] = {}
    with styled():
        for name, draw in FIGURES.items():
            drawn = draw(panel, context)
            if isinstance(drawn, str):
                missing[name] = drawn
            else:
                written += write_figure(drawn, folder, name)
    return written, missing
