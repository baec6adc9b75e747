"""Which slice a table shows when it cannot show everything, and the words that say so."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kshot.stats.panel import Panel
from kshot.types import BALANCED

ORACLE, ZERO_SHOT, CLAP, LPP, LOO, JS = "oracle_lambda", "zero_shot", "clap", "lpp", "loo_blend", "js_blend"
FOLD_GDA, GAUSS_PROBE, NCM = "fold_gda", "gauss_probe", "ncm"
STORY = (ZERO_SHOT, JS, LOO, ORACLE, CLAP, LPP, FOLD_GDA, GAUSS_PROBE)
INTERVALS = (
    "Differences are paired within cells; 95 % Student-t intervals on the cluster-bootstrap standard error over "
    "datasets (10,000 resamples)."
)

NOT_IN_TIER = "Left out, because they have no cell of tier {tier} with text: {named}."
NOT_AT_EVERY_K = "Left out, because they are not there at every K: {named}."


@dataclass(frozen=True, slots=True)
class Focus:
    """The prompt tier, backbone and profile of shots that single-slice tables and figures show; those of the paper
    where present."""

    tier: str
    backbone: str
    profile: str


def focus(panel: Panel) -> Focus:
    """One after the other, each among the cells that the choices before it leave: not every backbone has every tier."""
    known = _with_text_if_any(panel)
    profile = _preferred(known.profile, BALANCED)
    known = known.where(known.profile == profile)
    tier = _preferred(known.tier, "dataset")
    return Focus(tier, _preferred(known.backbone[known.tier == tier], "ViT-B-16"), profile)


def of_one_profile(panel: Panel) -> Panel:
    return panel.where(panel.profile == focus(panel).profile)


def primary(panel: Panel) -> Panel:
    """Cells of the primary tier and profile whose backbone has text: what the main tables are made of."""
    shown = focus(panel)
    return panel.where((panel.tier == shown.tier) & np.isfinite(panel.d2) & (panel.profile == shown.profile))


def single(panel: Panel) -> Panel:
    """The primary tier and profile on one backbone; cells without text only where no cell has any."""
    shown, known = focus(panel), _with_text_if_any(panel)
    here = (known.tier == shown.tier) & (known.backbone == shown.backbone)
    return known.where(here & (known.profile == shown.profile))


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


def elsewhere(panel: Panel, shown: Panel) -> list[str]:
    """The datasets of which a view shows no cell."""
    own = panel.dataset[panel.profile == focus(panel).profile]
    return sorted(set(own.tolist()) - set(shown.dataset.tolist()))


def left_out(panel: Panel, shown: Panel, backbone: str = "") -> str:
    """The sentence about datasets of which a view shows no cell; empty where there are none."""
    tier = focus(panel).tier + (f" on {backbone}" if backbone else "")
    absent = elsewhere(panel, shown)
    return NOT_IN_TIER.format(tier=tier, named=", ".join(absent)) if absent else ""


def ends_early(shown: Panel) -> list[str]:
    """The combinations that are not there at every K, each with what it lacks: `food101 with RN50 (without K=16)`."""
    short = shown.where(~shown.present_at_every_shot_count())
    pairs = sorted(set(zip(short.dataset.tolist(), short.backbone.tolist(), strict=True)))
    every, named = set(shown.shots.tolist()), []
    for dataset, backbone in pairs:
        own = short.shots[(short.dataset == dataset) & (short.backbone == backbone)]
        lacking = ", ".join(f"K={k}" for k in sorted(every - set(own.tolist())))
        named.append(f"{dataset} with {backbone} (without {lacking})")
    return named


def cut_short(shown: Panel) -> str:
    """The sentence about combinations that are not there at every K; empty where there are none."""
    named = ends_early(shown)
    return NOT_AT_EVERY_K.format(named=", ".join(named)) if named else ""


def why_empty(panel: Panel) -> str:
    """Why a table has no figure, where it does not know better."""
    if not np.isfinite(panel.d2).any():
        return "no cell of these records has text."
    failed, shown = failures(panel), primary(panel)
    return sentences(
        "no cell holds the results that it compares.",
        cut_short(shown),
        missing(panel, (ZERO_SHOT, JS, LOO, ORACLE, CLAP, LPP)),
        f"Failed records: {failed}." if failed else "",
    )


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


def _with_text_if_any(panel: Panel) -> Panel:
    with_text = panel.with_text()
    return with_text if len(with_text.shots) else panel


def _preferred(values: np.ndarray, favourite: str) -> str:
    names = sorted(set(values.tolist()))
    return favourite if favourite in names else (names[0] if names else "")
