"""The slice that a table or a figure shows: the paper's tier, backbone and profile where the records have them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kshot.stats.panel import Panel
from kshot.types import BALANCED

ORACLE, ZERO_SHOT, CLAP, LPP, LOO, JS = "oracle_lambda", "zero_shot", "clap", "lpp", "loo_blend", "js_blend"
FOLD_GDA, GAUSS_PROBE, NCM = "fold_gda", "gauss_probe", "ncm"
# The key of the slice that leaves no dataset out.
EVERY_DATASET = "every-dataset"


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


@dataclass(frozen=True, slots=True)
class PageSlice:
    """Cells that a reader of the page can choose; `group` is the axis on which they are chosen."""

    key: str
    group: str
    label: str
    panel: Panel


def page_slices(panel: Panel, measured: Mapping[str, Panel]) -> list[PageSlice]:
    """The cells of the report first; then every dataset at the K that all have, if some lack one; then each dataset,
    tier, backbone, profile of shots and metric alone."""
    first, shown = focus(panel), primary(panel)
    slices = [PageSlice("all", "", f"tier {first.tier}, all datasets that have every K", panel)]
    if len(common := _in_common(shown)):
        label = f"all {len(shown.names('dataset'))} datasets, K = {', '.join(map(str, common))}"
        slices.append(PageSlice(EVERY_DATASET, "datasets", label, panel.where(np.isin(panel.shots, common))))
    axes = {"dataset": shown.names("dataset"), "tier": panel.names("tier"), "backbone": panel.names("backbone")}
    for axis, names in (axes | {"profile": panel.names("profile")}).items():
        if len(names) > 1:
            for name in names:
                part = panel.where(panel.cells[axis] == name)
                slices.append(PageSlice(f"{axis}={name}", axis, name, part))
    others = ((key, part) for key, part in measured.items() if part.metric is not panel.metric)
    slices += (PageSlice(f"metric={key}", "metric", part.metric.title, part) for key, part in others)
    return slices


def _in_common(shown: Panel) -> list[int]:
    """The K that every dataset and backbone has; none where that is all K, or where no K is left."""
    every = np.unique(shown.shots)
    pairs = shown.combinations()
    held = [set(shown.shots[pairs == pair].tolist()) for pair in np.unique(pairs)]
    common = [int(k) for k in every if all(k in its for its in held)]
    return common if len(common) < len(every) else []


def _with_text_if_any(panel: Panel) -> Panel:
    with_text = panel.with_text()
    return with_text if len(with_text) else panel


def _preferred(values: np.ndarray, favourite: str) -> str:
    names = sorted(set(values.tolist()))
    return favourite if favourite in names else (names[0] if names else "")
