"""Sentences of captions: what a table counts, what it leaves out and why, where the records come from."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kshot.report.slices import CLAP, JS, LOO, LPP, ORACLE, ZERO_SHOT, focus, primary
from kshot.stats.panel import Panel

INTERVALS = (
    "Differences are paired within cells; 95 % Student-t intervals on the cluster-bootstrap standard error over "
    "datasets (10,000 resamples)."
)
ON_DATASETS = (
    "Differences are paired within cells; 95 % intervals over draws of shots and test pictures (crossed), {where}: "
    "they say nothing about other datasets. They need three draws; intervals over datasets need three datasets."
)
BESIDE = (
    "So few datasets give a wide interval. Beside it stands the one over draws of shots and test pictures (crossed) on "
    "these datasets alone{marked}."
)
TOO_FEW = "No intervals: those of this table are over datasets, and that takes three."
WHERE = {1: "on this dataset", 2: "on these two datasets"}
NOT_IN_TIER = "Left out, because they have no cell of tier {tier} with text: {named}{back}."
NOT_AT_EVERY_K = "Left out, because they are not there at every K: {named}{back}."
BACK = "; back with {options}"
# Behind the title of a head in which the leak check found a mistake.
LEAKY = " †"
HOW_TO_PROBE = "`kshot records probe RECORDS` measures it"


def sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def cells_in_words(panel: Panel) -> str:
    """`100 cells of 4 datasets`."""
    return f"{len(panel):,} cell{'s' * (len(panel) != 1)} of {datasets_in_words(len(panel.names('dataset')))}"


def datasets_in_words(number: int) -> str:
    return f"{number} dataset{'s' * (number != 1)}"


def draws_in_words(panel: Panel) -> str:
    """`5 draws`: the seeds of the shots."""
    seeds = len(np.unique(panel.seed))
    return f"{seeds} draw{'s' * (seeds != 1)}"


def provenance(panel: Panel) -> str:
    origin = panel.origin
    simulated = " SIMULATED features, no pictures." if origin.simulated else ""
    part = f", only {origin.only}" if origin.only else ""
    study = f"Study {origin.study}{part}, inputs {origin.inputs}"
    if origin.imported:
        return f"{study}: IMPORTED records, which kshot did not compute."
    versions = " to ".join(dict.fromkeys((*origin.versions[:1], *origin.versions[-1:])))
    code = ", ".join(f"{name} @{value[:8]}" for name, value in origin.code.items())
    return f"{study}, kshot {versions}, {origin.dtype}{f'; own heads: {code}' if code else ''}.{simulated}"


def where(datasets: int) -> str:
    """`on this dataset`; empty where there are enough for an interval over datasets."""
    return WHERE.get(datasets, "")


def intervals(panel: Panel) -> str:
    """Say whether the intervals of paired differences are over datasets, or over draws and pictures."""
    here = where(len(panel.names("dataset")))
    return ON_DATASETS.format(where=here) if here else INTERVALS


def over_datasets(panel: Panel) -> str:
    """The same for other figures, which have intervals over datasets or none."""
    return TOO_FEW if where(len(panel.names("dataset"))) else INTERVALS


def left_out(panel: Panel, shown: Panel, backbone: str = "") -> str:
    """Name the datasets without a cell in `shown`, and the options that show them; empty if there are none."""
    tier = focus(panel).tier + (f" on {backbone}" if backbone else "")
    of_profile = panel.where(panel.profile == focus(panel).profile)
    absent = sorted(set(of_profile.names("dataset")) - set(shown.dataset.tolist()))
    if not absent:
        return ""
    theirs = of_profile.where(np.isin(of_profile.dataset, absent)).with_text()
    axis = "backbone" if backbone and focus(panel).tier in theirs.tier else "tier"
    options = " or ".join(f"--{axis} {name}" for name in theirs.names(axis))
    return NOT_IN_TIER.format(tier=tier, named=", ".join(absent), back=_back(options))


def _back(options: str) -> str:
    return BACK.format(options=options) if options else ""


def lacking_shots(shown: Panel) -> dict[tuple[str, str], list[int]]:
    """The (dataset, backbone) that are not there at every K, each with the K that it lacks."""
    short = shown.where(~shown.present_at_every_shot_count())
    held: dict[tuple[str, str], set[int]] = {}
    for dataset, backbone, shots in short.cell_keys(("dataset", "backbone", "shots")):
        held.setdefault((dataset, backbone), set()).add(shots)
    every = set(shown.shots.tolist())
    return {pair: sorted(every - its) for pair, its in sorted(held.items())}


def cut_short(shown: Panel) -> str:
    """The combinations that are not there at every K: `food101 with RN50 (without K=16)`, and how to count them."""
    lacking = lacking_shots(shown)
    absent = {k for shots in lacking.values() for k in shots}
    named = [f"{dataset} with {backbone} (without {_listed(shots)})" for (dataset, backbone), shots in lacking.items()]
    options = " ".join(f"--shots {k}" for k in np.unique(shown.shots) if k not in absent)
    return NOT_AT_EVERY_K.format(named=", ".join(named), back=_back(options)) if named else ""


def _listed(shots: Iterable[int]) -> str:
    return ", ".join(f"K={k}" for k in shots)


def missing(panel: Panel, wanted: Iterable[str]) -> str:
    """The methods that the records do not hold; empty where all are there."""
    absent = [method for method in wanted if method not in panel.methods]
    return f"Missing, because these records do not hold it: {', '.join(absent)}." if absent else ""


def why_empty(panel: Panel) -> str:
    """The reason for an empty table whose maker gives none."""
    if not panel.has_text.any():
        return "no cell of these records has text."
    failed, shown = failures(panel), primary(panel)
    return sentences(
        "no cell holds the results that it compares.",
        cut_short(shown),
        missing(panel, (ZERO_SHOT, JS, LOO, ORACLE, CLAP, LPP)),
        f"Failed records: {failed}." if failed else "",
    )


def leak_words(leaks: Mapping[str, Sequence[str]]) -> list[str]:
    """What the leak check found, a sentence for each method."""
    more = {name: f"; and {len(found) - 1} more" if len(found) > 1 else "" for name, found in leaks.items()}
    return [f"{LEAKY.strip()}: not to be trusted. {found[0]}{more[name]}." for name, found in leaks.items()]


def failures(panel: Panel) -> str:
    """Methods with failed records and how many, in all records; empty where none failed."""
    columns = (panel.records[name].to_pylist() for name in ("method", "status"))
    failed = Counter(method for method, status in zip(*columns, strict=True) if status == "failed")
    return ", ".join(f"{panel.titles[method]} {count}" for method, count in sorted(failed.items()))


def turned_over(panel: Panel) -> frozenset[str]:
    """Methods that reversed classes in some cell, as SS-Text+ may with few shots."""
    records = zip(panel.records["method"].to_pylist(), panel.records["selected"].to_pylist(), strict=True)
    flagged = ((name, text) for name, text in records if text and '"turned_over"' in text)
    return frozenset(name for name, text in flagged if json.loads(text).get("turned_over"))


def without_pool(panel: Panel) -> str:
    """Count the cells whose pool is too small for the methods that need it; empty if there are none."""
    later = panel.where(panel.shots >= 2)
    lacking = {method: _thin_pool(later, method) for method in panel.methods}
    named = [f"{panel.titles[method]} in {cells} cells" for method, cells in lacking.items() if cells]
    return f"Too few pool pictures beside the shots: {', '.join(named)}." if named else ""


def incomplete(panel: Panel, methods: Iterable[str]) -> str:
    """Name the methods without a mean, because they lack some of these cells for another reason."""
    lacking = {m: np.count_nonzero(~np.isfinite(panel.column(m))) - _thin_pool(panel, m) for m in methods}
    named = [f"{panel.titles[method]} {cells}" for method, cells in lacking.items() if cells]
    return f"No mean, because of {len(panel)} cells some lack: {', '.join(named)}." if named else ""


def lost_cells(panel: Panel, method: str) -> str:
    """In how many cells the method failed or has no record; empty where it has all."""
    found = Counter(status or "absent" for status in panel.recorded(method, "status"))
    lost = " and ".join(f"{count} {what}" for what, count in sorted(found.items()) if what != "ok")
    return f"Judged on fewer than the {len(panel)} cells: {panel.titles[method]} {lost}." if lost else ""


def _thin_pool(panel: Panel, method: str) -> int:
    """In how many cells a method was refused because the pool leaves too little."""
    labelled = {"pool", "few_shot_validation", "validation"}
    records = zip(panel.recorded(method, "status"), panel.recorded(method, "sees"), strict=True)
    return sum(status == "undefined" and not labelled.isdisjoint(sees) for status, sees in records)
