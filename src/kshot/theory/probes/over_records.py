"""Probes that compare strata or cells: they read records, and features for the headroom."""

import json
from pathlib import Path

import numpy as np

from kshot.bench.record import CELL
from kshot.bench.records import load_table
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.stats.selected import RATIO
from kshot.theory.probes.agreement import surplus_row, tuned_weight_rows
from kshot.theory.probes.headroom import headroom_row
from kshot.theory.probes.section import Section

LEFT_OUT = "Left out, without features"
PROBE, BOUND, DIFFICULTY = "clap", "oracle_lambda", "zero_shot"


def diagnose_records(records: Path, store: Store, tier: str) -> list[Section]:
    """Headroom against the probe's surplus, and fitted ratios against a tuned weight, where recorded."""
    sections = (_surplus(records, store, tier), _tuned_weight(records, tier))
    return [section for section in sections if section.rows or LEFT_OUT in section.note]


def _surplus(records: Path, store: Store, tier: str) -> Section:
    """CLAP minus oracle blend, averaged over the cells of a stratum where all three methods exist."""
    by_stratum: dict[tuple[str, str], list] = {}
    for (dataset, backbone, *_), methods in _cells(records, tier, "accuracy").items():
        probe, bound, plain = (methods.get(name) for name in (PROBE, BOUND, DIFFICULTY))
        if probe is not None and bound is not None and plain is not None:
            by_stratum.setdefault((dataset, backbone), []).append((probe - bound, plain))
    strata = [(*names, *np.mean(values, axis=0).tolist()) for names, values in sorted(by_stratum.items())]
    rows, headroom = [], []
    with_features = [row for row in strata if store.has(row[0], row[1], f"text-{tier}")]
    absent = [f"{row[0]}/{row[1]}" for row in strata if row not in with_features]
    strata = with_features
    if len(strata) > 2:
        for dataset, backbone, *_ in strata:
            text = load_prior(store, dataset, backbone, tier).text
            headroom.append(headroom_row(load_stratum(store, dataset, backbone).pool, text)["headroom"])
        names = np.array([row[:2] for row in strata])
        surplus, plain = np.array([row[2:] for row in strata], float).T
        rows = [surplus_row(np.array(headroom), surplus, plain, names[:, 0], names[:, 1])]
    return Section(
        "Headroom against CLAP's surplus over the oracle blend",
        rows,
        "Rank correlations over strata; difficulty is zero-shot accuracy; within: median over groups."
        + (f" {LEFT_OUT} in {store.root}: {', '.join(absent)}." if absent else ""),
    )


def _tuned_weight(records: Path, tier: str) -> Section:
    ratios = {key: next(iter(found.values())) for key, found in _cells(records, tier, "lambda_js").items()}
    cells = [
        (backbone, dataset, shots, seed, ratios[key], found["loo_blend"], found["tip_adapter_test"])
        for key, found in _cells(records, tier, "selected").items()
        for dataset, backbone, _, shots, seed, _ in [key]
        if ratios.get(key) is not None and {"loo_blend", "tip_adapter_test"} <= found.keys()
    ]
    cells.sort()
    rows = []
    if cells:
        loo, alpha = (
            np.array([float(json.loads(cell[column])[name]) for cell in cells])
            for column, name in ((5, RATIO), (6, "alpha"))
        )
        backbone, js = np.array([cell[0] for cell in cells]), np.array([cell[4] for cell in cells], float)
        rows = tuned_weight_rows(backbone, js, loo, alpha)
    return Section(
        "Fitted ratios against Tip-Adapter's test-tuned alpha",
        rows,
        "Spearman over cells; if the bias–variance story held, James–Stein would predict the tuned trust.",
    )


def _cells(records: Path, tier: str, column: str) -> dict[tuple, dict]:
    """One column of the tier's records that are ok, by cell and method."""
    found: dict[tuple, dict] = {}
    for row in load_table(records, [*CELL, "method", "status", column]).to_pylist():
        if row["tier"] == tier and row["status"] == "ok":
            found.setdefault(tuple(row[name] for name in CELL), {})[row["method"]] = row[column]
    return found
