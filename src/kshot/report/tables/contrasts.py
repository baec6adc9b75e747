"""The central contrasts again: per backbone, per shot count, without text."""

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import cells_in_words, intervals, left_out, missing, over_datasets
from kshot.report.slices import CLAP, FOLD_GDA, JS, LOO, LPP, NCM, ORACLE, ZERO_SHOT, focus, primary, single
from kshot.report.table import Number, Table, content, count, interval, number, signed
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.correlation import rank_correlation
from kshot.stats.leaderboard import paired, paired_with
from kshot.stats.panel import Panel

CENTRAL = (JS, LOO, CLAP, LPP)
CENTRED = "centred_js_blend"
PROBES = ("logistic_probe_test", "logistic_probe")
DRAW = ("dataset", "shots", "seed")
SAME_CELLS = "; n: the cells of a row where all of its methods exist."
# An upper end for shots that no study reaches.
ANY = 10**9


def _contrasted(panel: Panel) -> list[str]:
    return [*CENTRAL, FOLD_GDA] if FOLD_GDA in panel.methods else list(CENTRAL)


def _minus_oracle(cells: Panel, methods: list[str]) -> tuple[Number, ...]:
    """Each method minus the oracle ratio over the cells where all of them exist, and the number of these cells."""
    common = cells.with_all((ORACLE, *methods))
    return (*map(interval, paired_with(common, methods, ORACLE).values()), count(len(common)))


def per_backbone(panel: Panel, context: Context) -> Table:
    """Zero-shot accuracy, class-independent share, and the central contrasts within each backbone."""
    shown, methods = primary(panel), _contrasted(panel)
    rows = []
    for backbone in shown.names("backbone"):
        own, everywhere = (part.where(part.backbone == backbone) for part in (shown, panel))
        own = own.with_all((ORACLE, ZERO_SHOT, *methods))
        share = cluster_mean(100 * everywhere.share, everywhere.dataset)
        zero_shot = number(cluster_mean(own.column(ZERO_SHOT), own.dataset).mean)
        rows.append((backbone, zero_shot, interval(share, 1, sign=False), *_minus_oracle(own, methods)))
    return content(
        ("backbone", "zero-shot %", "share %", *(panel.titles.get(m, m) for m in methods), "n"),
        rows,
        [
            f"Tier {focus(panel).tier}; share: class-independent part of the squared text–image distance, over all "
            f"tiers. {cells_in_words(shown)}{SAME_CELLS}",
            left_out(panel, shown),
            _rank_sentence(rows),
            intervals(shown),
            missing(panel, (ORACLE, ZERO_SHOT, *methods)),
        ],
    )


def _rank_sentence(rows: list[tuple]) -> str:
    """Does the James–Stein deficit follow the share, or the room that zero-shot leaves (paper, Table 6)?"""
    zero_shot, share, deficit = (np.array([float(row[column]) for row in rows]) for column in (1, 2, 3))
    known = np.count_nonzero(np.isfinite(deficit))
    if known < 3:
        return ""
    by_share, by_zero_shot = (rank_correlation(side, np.abs(deficit)) for side in (share, zero_shot))
    return (
        f"Rank correlation over the {known} backbones of the James–Stein deficit with the share "
        f"{signed(by_share)}, with zero-shot accuracy {signed(by_zero_shot)}."
    )


def further_contrasts(panel: Panel, context: Context) -> Table | str:
    """What the shrinkage adds to image means, what centring does to it, and every method against the LOO blend."""
    shown = primary(panel)
    pairs = [(JS, NCM), (NCM, ORACLE), (JS, ZERO_SHOT), (CENTRED, JS), (LOO, ZERO_SHOT)]
    pairs += [(m, LOO) for m in shown.free_methods() if m not in (LOO, JS, NCM, CENTRED, ZERO_SHOT)]
    two_shots = shown.where(shown.shots >= 2)
    if len(shown) and not len(two_shots):
        return "these records end at K = 1."
    rows = []
    for method, baseline in pairs:
        contrast = paired(two_shots, method, baseline)
        if contrast.n:
            names = f"{panel.titles[method]} − {panel.titles[baseline]}"
            rows.append((names, interval(contrast), count(contrast.n)))
    return content(
        ("contrast", "mean", "n"),
        rows,
        [
            f"Tier {focus(panel).tier}; {cells_in_words(two_shots)}.",
            left_out(panel, shown),
            intervals(two_shots),
            missing(panel, (JS, LOO)),
        ],
    )


def by_shots(panel: Panel, context: Context) -> Table:
    """The central contrasts at each K for one backbone; the pooled rows have the cells where all of them exist."""
    shown, methods = single(panel), _contrasted(panel)
    slices = {f"K={k}": shown.where(shown.shots == k) for k in np.unique(shown.shots)}
    pooled = {f"K≥{k} pooled": shown.where(shown.shots >= k) for k in (2, 4) if (shown.shots >= k).any()}
    return content(
        ("shots", *(panel.titles.get(m, m) for m in methods), "n"),
        [
            *((name, *_minus_oracle(cells, methods)) for name, cells in slices.items()),
            ("all K pooled", *map(interval, paired_with(shown, methods, ORACLE).values()), count(len(shown))),
            *((name, *_minus_oracle(cells, methods)) for name, cells in pooled.items()),
        ],
        [
            f"Tier {focus(panel).tier}; {cells_in_words(shown)}{SAME_CELLS} All K: every cell that a method has.",
            left_out(panel, shown, focus(panel).backbone),
            intervals(shown),
            missing(panel, (ORACLE, *methods)),
        ],
        rule=len(slices),
        below_rule="pooled",
    )


def text_free(panel: Panel, context: Context) -> Table | str:
    """A plain probe on each backbone against the text backbone's oracle ratio on the same shots."""
    probes = [m for m in PROBES if m in panel.methods]
    if not probes:
        return missing(panel, PROBES)
    reference, backbone = single(panel), focus(panel).backbone
    bound = dict(zip(reference.cell_keys(DRAW), reference.column(ORACLE), strict=True))
    without_text = sorted(set(panel.backbone[~panel.has_text].tolist()))
    sides = [(b, m) for b in (*without_text, backbone) for m in probes]
    slices = {f"K={k}": (k, k) for k in np.unique(reference.shots).tolist()}
    pooled = {"K≥4 pooled": (4, ANY)} if reference.shots.max() >= 4 else {}
    return content(
        ("shots", *(f"{b}, {panel.titles[m]}" for b, m in sides)),
        [
            (name, *(interval(_against(panel, b, m, bound, *keep)) for b, m in sides))
            for name, keep in (slices | pooled).items()
        ],
        [
            f"Paired within dataset, K and seed with the oracle ratio of {backbone}, tier {focus(panel).tier}; "
            f"{cells_in_words(reference)}. The last backbone is the control: the same probe on its own features.",
            left_out(panel, reference, backbone),
            over_datasets(reference),
            missing(panel, (ORACLE, *PROBES)),
            "" if without_text else "No text-free backbone in these records.",
        ],
        rule=len(slices),
        below_rule="pooled",
    )


def _against(panel: Panel, backbone: str, method: str, bound: dict, least: int, most: int) -> Estimate:
    """Each draw counts once: a probe does not read the prompt, so the first tier that has its record serves."""
    recorded = np.isfinite(panel.column(method)) & (panel.backbone == backbone)
    own = panel.where(recorded & (panel.shots >= least) & (panel.shots <= most))
    first: dict[tuple, int] = {}
    for cell, draw in enumerate(own.cell_keys(DRAW)):
        first.setdefault(draw, cell)
    own = own.where(np.isin(np.arange(len(own)), list(first.values())))
    reference = np.array([bound.get(draw, np.nan) for draw in own.cell_keys(DRAW)], float)
    return cluster_mean(own.column(method) - reference, own.dataset)
