"""Which slice a table shows when it cannot show everything, and the words that say so."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kshot.profiles import BALANCED
from kshot.stats.panel import Panel

ORACLE, ZERO_SHOT, CLAP, LPP, LOO, JS = "oracle_lambda", "zero_shot", "clap", "lpp", "loo_blend", "js_blend"
FOLD_GDA, GAUSS_PROBE, NCM = "fold_gda", "gauss_probe", "ncm"
STORY = (ZERO_SHOT, JS, LOO, ORACLE, CLAP, LPP, FOLD_GDA, GAUSS_PROBE)
INTERVALS = (
    "Differences are paired within cells; 95 % Student-t intervals on the cluster-bootstrap standard error over "
    "datasets (10,000 resamples)."
)


@dataclass(frozen=True, slots=True)
class Focus:
    """The prompt tier, backbone and profile of shots that single-slice tables and figures show; those of the paper
    where present."""

    tier: str
    backbone: str
    profile: str


def focus(panel: Panel) -> Focus:
    with_text = panel.with_text()
    known = with_text if len(with_text.shots) else panel
    return Focus(
        _preferred(known.tier, "dataset"), _preferred(known.backbone, "ViT-B-16"), _preferred(known.profile, BALANCED)
    )


def of_one_profile(panel: Panel) -> Panel:
    return panel.where(panel.profile == focus(panel).profile)


def primary(panel: Panel) -> Panel:
    """Cells of the primary tier and profile whose backbone has text: what the main tables are made of."""
    shown = focus(panel)
    return panel.where((panel.tier == shown.tier) & np.isfinite(panel.d2) & (panel.profile == shown.profile))


def single(panel: Panel) -> Panel:
    """The primary tier and profile on one backbone."""
    shown = focus(panel)
    here = (panel.tier == shown.tier) & (panel.backbone == shown.backbone)
    return panel.where(here & (panel.profile == shown.profile))


def strata_to_draw(panel: Panel) -> dict[str, str]:
    """The backbone by which each dataset of the primary tier is drawn: that of the focus where the dataset has it."""
    shown, favourite = primary(panel), focus(panel).backbone
    by = {name: _preferred(shown.backbone[shown.dataset == name], favourite) for name in shown.dataset.tolist()}
    return dict(sorted(by.items()))


def story_first(panel: Panel) -> list[str]:
    """The methods in the order in which they get lines and colours of their own: those of the paper's story lead."""
    return sorted(panel.methods, key=lambda method: method not in STORY)


def counted(panel: Panel) -> str:
    return f"n = {len(panel.shots)} cells, G = {len(np.unique(panel.dataset))} datasets"


def provenance(panel: Panel) -> str:
    simulated = " SIMULATED features, no pictures." if panel.simulated else ""
    part = f", only {panel.only}" if panel.only else ""
    return f"Study {panel.study}{part}, hash {panel.study_hash}, kshot {panel.version}, {panel.dtype}.{simulated}"


def turned_over(panel: Panel) -> frozenset[str]:
    """Methods that recorded in some cell that their rule turned classes over (SS-Text+ where shots are few)."""
    records = zip(panel.records["method"].to_pylist(), panel.records["selected"].to_pylist(), strict=True)
    told = ((name, text) for name, text in records if text and '"turned_over"' in text)
    return frozenset(name for name, text in told if json.loads(text)["turned_over"])


def missing(panel: Panel, wanted: Iterable[str]) -> str:
    """The sentence about methods that the records do not hold; empty where all are there."""
    absent = [method for method in wanted if method not in panel.methods]
    return f"Missing, because these records do not hold it: {', '.join(absent)}." if absent else ""


def without_pool(panel: Panel) -> str:
    """The sentence about cells whose pool leaves too little for methods that look at it; empty where none are."""
    lacking = _thin_pool(panel.where(panel.shots >= 2))
    named = [f"{panel.titles[method]} in {cells} cells" for method, cells in lacking.items() if cells]
    return f"Too few pool pictures beside the shots: {', '.join(named)}." if named else ""


def incomplete(panel: Panel, methods: Iterable[str]) -> str:
    """The sentence about methods that lack some of these cells for any other reason, so that they have no mean."""
    pool = _thin_pool(panel)
    lacking = {m: np.count_nonzero(~np.isfinite(panel.column(m))) - pool[m] for m in methods}
    named = [f"{panel.titles[method]} {cells}" for method, cells in lacking.items() if cells]
    return f"No mean, because of {len(panel.shots)} cells some lack: {', '.join(named)}." if named else ""


def _thin_pool(panel: Panel) -> dict[str, int]:
    """In how many cells each method was refused because the pool leaves too little."""
    sees, status = panel.records["sees"].to_pylist(), panel.records["status"].to_pylist()
    return {
        method: sum(
            status[row] == "undefined" and not {"pool", "few_shot_validation", "validation"}.isdisjoint(sees[row])
            for row in panel.row[:, place].tolist()
            if row >= 0
        )
        for place, method in enumerate(panel.methods)
    }


def failures(panel: Panel) -> str:
    """Methods with failed records and how many, wherever the page's filters stand; empty where none failed."""
    columns = (panel.records[name].to_pylist() for name in ("method", "status"))
    failed = Counter(method for method, status in zip(*columns, strict=True) if status == "failed")
    return ", ".join(f"{panel.titles[method]} {count}" for method, count in sorted(failed.items()))


def lost_cells(panel: Panel, methods: Iterable[str]) -> str:
    """The sentence about methods that failed or do not exist in some cells, and so are judged on fewer."""
    status = panel.records["status"].to_pylist()
    named = []
    for method in methods:
        rows = panel.row[:, panel.methods.index(method)]
        found = Counter("absent" if row < 0 else status[row] for row in rows.tolist())
        lost = [f"{count} {what}" for what, count in sorted(found.items()) if what != "ok"]
        named += [f"{panel.titles[method]} {' and '.join(lost)}"] if lost else []
    return f"Judged on fewer than the {len(panel.shots)} cells: {', '.join(named)}." if named else ""


def sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _preferred(values: np.ndarray, favourite: str) -> str:
    names = sorted(set(values.tolist()))
    return favourite if favourite in names else (names[0] if names else "")
