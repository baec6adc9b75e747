"""The central contrasts again: per backbone, per shot count, without text."""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import (
    CLAP,
    FOLD_GDA,
    INTERVALS,
    JS,
    LOO,
    LPP,
    ORACLE,
    ZERO_SHOT,
    counted,
    focus,
    left_out,
    missing,
    primary,
    provenance,
    sentences,
    single,
)
from kshot.report.numbers import count, interval, number, signed
from kshot.report.table import Table, absent_table
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.correlation import rank_correlation
from kshot.stats.leaderboard import paired, paired_with
from kshot.stats.panel import Panel

CENTRAL = (JS, LOO, CLAP, LPP)
NCM, CENTRED = "ncm", "centred_js_blend"
PROBES = ("logistic_probe_test", "logistic_probe")
SAME_CELLS = "; n: the cells of a row where all of its methods exist."


def _contrasted(panel: Panel) -> list[str]:
    return [*CENTRAL, FOLD_GDA] if FOLD_GDA in panel.methods else list(CENTRAL)


def per_backbone_table(panel: Panel, context: Context) -> Table:
    """Zero-shot accuracy, class-independent share, and the central contrasts within each backbone."""
    shown, methods = primary(panel), _contrasted(panel)
    rows = []
    for backbone in sorted(set(shown.backbone.tolist())):
        own, everywhere = (part.where(part.backbone == backbone) for part in (shown, panel))
        own = own.with_all((ORACLE, ZERO_SHOT, *methods))
        share = cluster_mean(100 * everywhere.share, everywhere.dataset)
        contrasts = paired_with(own, methods, ORACLE)
        rows.append(
            (
                backbone,
                number(cluster_mean(own.column(ZERO_SHOT), own.dataset).mean),
                interval(share, 1, sign=False),
                *(interval(contrasts[m]) for m in methods),
                count(len(own.shots)),
            )
        )
    return Table(
        key="per_backbone",
        title="Backbone consistency: against the oracle ratio (percentage points)",
        columns=("backbone", "zero-shot %", "share %", *(panel.titles.get(m, m) for m in methods), "n"),
        rows=tuple(rows),
        caption=sentences(
            f"Tier {focus(panel).tier}; share: class-independent part of the squared text–image distance, over all "
            f"tiers. {counted(shown)}{SAME_CELLS}",
            left_out(panel, shown),
            _rank_sentence(rows),
            INTERVALS,
            missing(panel, (ORACLE, ZERO_SHOT, *methods)),
            provenance(panel),
        ),
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


def further_contrasts_table(panel: Panel, context: Context) -> Table:
    """What the shrinkage adds to image means, what centring does to it, and every method against the LOO blend."""
    shown = primary(panel)
    pairs = [(JS, NCM), (NCM, ORACLE), (JS, ZERO_SHOT), (CENTRED, JS), (LOO, ZERO_SHOT)]
    pairs += [(m, LOO) for m in shown.free_methods() if m not in (LOO, JS, NCM, CENTRED, ZERO_SHOT)]
    known = [pair for pair in pairs if set(pair) <= set(panel.methods)]
    two_shots = shown.where(shown.shots >= 2)
    key, title = "further_contrasts", "Further contrasts, K ≥ 2 (percentage points)"
    if len(shown.shots) and not len(two_shots.shots):
        return absent_table(key, title, "these records end at K = 1.")
    rows = []
    for method, baseline in known:
        contrast = paired(two_shots, method, baseline)
        if contrast.n:
            names = f"{panel.titles[method]} − {panel.titles[baseline]}"
            rows.append((names, interval(contrast), count(contrast.n)))
    return Table(
        key=key,
        title=title,
        columns=("contrast", "mean", "n"),
        rows=tuple(rows),
        caption=sentences(
            f"Tier {focus(panel).tier}; {counted(two_shots)}.",
            left_out(panel, shown),
            INTERVALS,
            missing(panel, (JS, LOO)),
            provenance(panel),
        ),
    )


def by_shots_table(panel: Panel, context: Context) -> Table:
    """The central contrasts at each K for one backbone; the pooled rows have the cells where all of them exist."""
    key, title = ("by_shots", f"By shots, {focus(panel).backbone}: against the oracle ratio (percentage points)")
    shown, methods = single(panel), _contrasted(panel)
    slices = {f"K={k}": shown.where(shown.shots == k) for k in np.unique(shown.shots)}
    pooled = {f"K≥{k} pooled": shown.where(shown.shots >= k) for k in (2, 4) if (shown.shots >= k).any()}
    rows = []
    for name, cells in (slices | pooled).items():
        common = cells.with_all((ORACLE, *methods))
        contrasts = paired_with(common, methods, ORACLE)
        rows.append((name, *(interval(contrasts[m]) for m in methods), count(len(common.shots))))
    return Table(
        key=key,
        title=title,
        columns=("shots", *(panel.titles.get(m, m) for m in methods), "n"),
        rows=tuple(rows),
        caption=sentences(
            f"Tier {focus(panel).tier}; {counted(shown)}{SAME_CELLS}",
            left_out(panel, shown, focus(panel).backbone),
            INTERVALS,
            missing(panel, (ORACLE, *methods)),
            provenance(panel),
        ),
        rule=len(slices),
        below_rule="pooled",
    )


def text_free_table(panel: Panel, context: Context) -> Table:
    """A plain probe on each backbone against the text backbone's oracle ratio on the same shots."""
    key, title = "text_free", "Text-free reference points: logistic probe against the oracle ratio (points)"
    probes = [m for m in PROBES if m in panel.methods]
    if not probes:
        return absent_table(key, title, missing(panel, PROBES))
    reference = single(panel)
    bound = {_draw(reference, i): value for i, value in enumerate(reference.column(ORACLE))}
    text_free = sorted(set(panel.backbone[~np.isfinite(panel.d2)].tolist()))
    backbones = [*text_free, focus(panel).backbone]
    sides = [(b, m) for b in backbones for m in probes]
    shots = sorted(set(reference.shots.tolist()))
    pooled = {"K≥4 pooled": (4, 10**9)} if max(shots) >= 4 else {}
    rows = []
    for name, keep in {**{f"K={k}": (k, k) for k in shots}, **pooled}.items():
        cells = [_against(panel, b, m, bound, *keep) for b, m in sides]
        rows.append((name, *map(interval, cells)))
    return Table(
        key=key,
        title=title,
        columns=("shots", *(f"{b}, {panel.titles[m]}" for b, m in sides)),
        rows=tuple(rows),
        caption=sentences(
            f"Paired within dataset, K and seed with the oracle ratio of {focus(panel).backbone}, tier "
            f"{focus(panel).tier}; {counted(reference)}. The last backbone is the control: the same probe on its own "
            "features.",
            left_out(panel, reference, focus(panel).backbone),
            INTERVALS,
            missing(panel, (ORACLE, *PROBES)),
            "" if text_free else "No text-free backbone in these records.",
            provenance(panel),
        ),
        rule=len(shots),
        below_rule="pooled",
    )


def _draw(panel: Panel, index: int) -> tuple[str, int, int]:
    return str(panel.dataset[index]), int(panel.shots[index]), int(panel.seed[index])


def _against(
    panel: Panel, backbone: str, method: str, bound: dict[tuple[str, int, int], float], least: int, most: int
) -> Estimate:
    """Each draw counts once: a probe does not read the prompt, so the first tier that has its record serves."""
    recorded = np.isfinite(panel.column(method)) & (panel.backbone == backbone)
    own = panel.where(recorded & (panel.shots >= least) & (panel.shots <= most))
    first = {_draw(own, i): i for i in reversed(range(len(own.shots)))}
    chosen = np.array(sorted(first.values()), int)
    own = own.where(np.isin(np.arange(len(own.shots)), chosen))
    reference = np.array([bound.get(_draw(own, i), np.nan) for i in range(len(own.shots))])
    return cluster_mean(own.column(method) - reference, own.dataset)
