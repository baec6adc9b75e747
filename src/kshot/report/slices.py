"""The slice that a table or a figure shows: the paper's tier, backbone and profile where the records have them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kshot.stats.panel import Panel
from kshot.types import BALANCED

ORACLE, ZERO_SHOT, CLAP, LPP, LOO, JS = "oracle_lambda", "zero_shot", "clap", "lpp", "loo_blend", "js_blend"
FOLD_GDA, GAUSS_PROBE, NCM = "fold_gda", "gauss_probe", "ncm"
STORY = (ZERO_SHOT, JS, LOO, ORACLE, CLAP, LPP, FOLD_GDA, GAUSS_PROBE)


@dataclass(frozen=True, slots=True)
class Focus:
    """The prompt tier, backbone and profile of shots that tables and figures of one slice show."""

    tier: str
    backbone: str
    profile: str


def focus(panel: Panel) -> Focus:
    """Choose the profile, then the tier, then the backbone, each among the cells that are left: not every backbone has
    every tier."""
    known = _with_text_if_any(panel)
    profile = _preferred(known.profile, BALANCED)
    known = known.where(known.profile == profile)
    tier = _preferred(known.tier, "dataset")
    return Focus(tier, _preferred(known.backbone[known.tier == tier], "ViT-B-16"), profile)


def of_one_profile(panel: Panel) -> Panel:
    return panel.where(panel.profile == focus(panel).profile)


def primary(panel: Panel) -> Panel:
    """Cells of the primary tier and profile, without text only where no cell has any: what the main tables are made
    of."""
    shown, known = focus(panel), _with_text_if_any(panel)
    return known.where((known.tier == shown.tier) & (known.profile == shown.profile))


def single(panel: Panel) -> Panel:
    """The primary tier and profile on one backbone; cells without text only where no cell has any."""
    shown, known = focus(panel), _with_text_if_any(panel)
    here = (known.tier == shown.tier) & (known.backbone == shown.backbone)
    return known.where(here & (known.profile == shown.profile))


def in_stratum(panel: Panel, dataset: str, backbone: str) -> Panel:
    return panel.where((panel.dataset == dataset) & (panel.backbone == backbone))


def story_first(panel: Panel, own: Sequence[str] = ()) -> list[str]:
    """Order the methods for figures: the reader's own, then the paper's, then the others."""
    return sorted(panel.methods, key=lambda method: (method not in own, method not in STORY))


def _with_text_if_any(panel: Panel) -> Panel:
    with_text = panel.with_text()
    return with_text if len(with_text) else panel


def _preferred(values: np.ndarray, favourite: str) -> str:
    names = sorted(set(values.tolist()))
    return favourite if favourite in names else (names[0] if names else "")
