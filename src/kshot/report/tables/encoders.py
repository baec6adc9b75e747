"""Do the findings hold on other encoders? By strength of text against pictures, and the order of encoders."""

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import cells_in_words, left_out, missing, over_datasets
from kshot.report.slices import CLAP, GAUSS_PROBE, JS, LOO, LPP, NCM, ORACLE, ZERO_SHOT, focus, in_stratum, primary
from kshot.report.table import Table, TableCell, content, interval, number, signed
from kshot.stats.bootstrap import cluster_mean
from kshot.stats.correlation import rank_correlation, spearman
from kshot.stats.leaderboard import paired_with
from kshot.stats.panel import Panel

FINDINGS = (JS, LOO, CLAP, LPP, GAUSS_PROBE)
# Strength of text: zero-shot accuracy minus that of the class means of so many shots.
STRENGTH_SHOTS = 2
LEAST_STRATA, LEAST_ENCODERS = 3, 3
# Points of zero-shot minus NCM between weak and strong text.
STRONG = 10.0


def text_strength(panel: Panel, context: Context) -> Table | str:
    """Every finding minus the oracle ratio, stratum by stratum, from the weakest text to the strongest."""
    shown = primary(panel)
    methods = [m for m in FINDINGS if m in panel.methods]
    strength = strengths(shown)
    if len(strength) < LEAST_STRATA or len(shown.names("backbone")) < 2:
        return "it needs zero-shot, NCM and the oracle ratio on three strata of two backbones."
    later = shown.where(shown.shots >= STRENGTH_SHOTS).with_all((ORACLE, *methods))
    rows: list[tuple[TableCell, ...]] = []
    lines = np.array([minus_oracle(in_stratum(later, *place), methods) for place in strength])
    for (dataset, backbone), line in zip(strength, lines, strict=True):
        plain = in_stratum(shown, dataset, backbone).column(ZERO_SHOT)
        known = number(float(np.nanmean(plain))), signed(strength[dataset, backbone], 1)
        rows.append((f"{dataset}, {backbone}", *known, *(signed(float(value)) for value in line)))
    side, sets = np.array(list(strength.values())), np.array([dataset for dataset, _ in strength])
    rules = len(rows)
    for words, keep in (("weaker text", side < STRONG), ("stronger text", side >= STRONG)):
        if keep.any():
            means = (interval(cluster_mean(column[keep], sets[keep])) for column in lines.T)
            rows.append((f"{words}: {np.count_nonzero(keep)} strata", "", "", *means))
    rows.append(("rank correlation with strength", "", "", *(interval(spearman(side, v, sets)) for v in lines.T)))
    return content(
        ("stratum", "zero-shot %", "text's strength", *(panel.titles[m] for m in methods)),
        rows,
        [
            f"Points minus the oracle ratio, K ≥ {STRENGTH_SHOTS}, tier {focus(panel).tier}; {cells_in_words(later)}. "
            f"Text's strength: zero-shot minus NCM at K = {STRENGTH_SHOTS}; weaker is below {STRONG:.0f} points. "
            "Encoders of one dataset are one cluster.",
            left_out(panel, shown),
            over_datasets(shown),
            missing(panel, (ORACLE, NCM, *FINDINGS)),
        ],
        rule=rules,
        below_rule="pooled",
    )


def encoder_order(panel: Panel, context: Context) -> Table | str:
    """Accuracy of every encoder of one dataset by head and K, and whether the encoders' order is zero-shot's."""
    shown = primary(panel)
    several = {d: shown.where(shown.dataset == d) for d in shown.names("dataset")}
    several = {d: part for d, part in several.items() if len(part.names("backbone")) >= LEAST_ENCODERS}
    if not several:
        return f"it needs a dataset through {LEAST_ENCODERS} encoders."
    dataset, part = max(several.items(), key=lambda item: len(item[1].names("backbone")))
    encoders = part.names("backbone")
    methods = [m for m in (ZERO_SHOT, NCM, ORACLE, *FINDINGS) if m in panel.methods]
    plain = _by_encoder(part, ZERO_SHOT, encoders)
    rows = []
    for shots in np.unique(part.shots).tolist():
        cells = part.where(part.shots == shots)
        for method in methods:
            means = _by_encoder(cells, method, encoders)
            if np.isfinite(means).all() and (method != ZERO_SHOT or not rows):
                name = panel.titles[method] if method == ZERO_SHOT else f"{panel.titles[method]}, K={shots}"
                rho = rank_correlation(means, plain)
                rows.append((name, *map(number, means.tolist()), encoders[int(means.argmax())], signed(rho)))
    return content(
        ("head", *encoders, "best encoder", "order against zero-shot's"),
        rows,
        [
            f"Accuracy (%) on {dataset}, tier {focus(panel).tier}; {cells_in_words(part)}. The last column is the rank "
            "correlation of the encoders' accuracies with their zero-shot accuracies: 1 where a head orders them so. "
            "One dataset: no interval over datasets exists.",
            missing(panel, (ZERO_SHOT, NCM, ORACLE)),
        ],
    )


def strengths(panel: Panel) -> dict[tuple[str, str], float]:
    """Zero-shot minus NCM of every stratum that has both beside an oracle ratio, the weakest text first."""
    cells = panel.where(panel.shots == STRENGTH_SHOTS).with_all((ZERO_SHOT, NCM, ORACLE))
    difference = cells.column(ZERO_SHOT) - cells.column(NCM)
    places = cells.cell_keys(("dataset", "backbone"))
    found = {one: float(np.mean([d for d, p in zip(difference, places, strict=True) if p == one])) for one in places}
    found = {one: value for one, value in found.items() if np.isfinite(value)}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def minus_oracle(cells: Panel, methods: list[str]) -> list[float]:
    """Mean paired difference of each method."""
    return [one.mean for one in paired_with(cells, methods, ORACLE).values()]


def _by_encoder(cells: Panel, method: str, encoders: list[str]) -> np.ndarray:
    """Means over the cells of each; NaN where the method is undefined."""
    known = np.isfinite(cells.column(method))
    groups = (cells.column(method)[known & (cells.backbone == encoder)] for encoder in encoders)
    return np.array([float(values.mean()) if len(values) else np.nan for values in groups])
