"""The ratio itself: does it move with the prior, and do the estimates follow the oracle?"""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import (
    INTERVALS,
    JS,
    LOO,
    ORACLE,
    ZERO_SHOT,
    counted,
    focus,
    left_out,
    missing,
    primary,
    provenance,
    sentences,
)
from kshot.report.numbers import count, interval, number
from kshot.report.table import Table, absent_table
from kshot.stats.bootstrap import cluster_means
from kshot.stats.correlation import spearman
from kshot.stats.panel import Panel

GENERIC = "photo"
ESTIMATES = (JS, "centred_js_blend", LOO, "loo_blend_kcorr", "mse_oracle")


def prior_upgrade_table(panel: Panel, context: Context) -> Table:
    """What a better prompt changes, paired within (dataset, backbone, K, seed)."""
    key, title = "prior_upgrade", "Prior upgrade: change against the generic prompt"
    known = panel.with_text()
    tiers = sorted(set(known.tier.tolist()))
    columns = ("tier", "Δ zero-shot, points", "Δ d²", "Δ oracle λ", "Δ LOO λ", "n")
    if GENERIC not in tiers or len(tiers) < 2:
        why = f"it needs tier {GENERIC} and another; these records hold {', '.join(tiers) or 'none'}."
        return absent_table(key, title, why)
    before = _by_draw(known.where(known.tier == GENERIC))
    rows = []
    for tier in (t for t in tiers if t != GENERIC):
        after = _by_draw(known.where(known.tier == tier))
        shared = sorted(before.keys() & after.keys())
        if not shared:
            continue
        change = np.array([after[draw] - before[draw] for draw in shared])
        complete = np.isfinite(change[:, np.isfinite(change).any(axis=0)]).all(axis=1)
        change, shared = change[complete], [shared[row] for row in np.flatnonzero(complete)]
        zero_shot, d2, oracle, loo = cluster_means(change, np.array([draw[0] for draw in shared]))
        cells = (interval(zero_shot), interval(d2, 4), interval(oracle, 3), interval(loo, 3))
        rows.append((f"→ {tier}", *cells, count(zero_shot.n)))
    return Table(
        key=key,
        title=title,
        columns=columns,
        rows=tuple(rows),
        caption=sentences(
            f"Tier minus {GENERIC}, paired within dataset, backbone, K and seed; {counted(known)} in all tiers. "
            "n: draws where all of a row's figures exist, so from K = 2 where the LOO λ is among them.",
            INTERVALS,
            missing(panel, (ZERO_SHOT, ORACLE, LOO)),
            provenance(panel),
        ),
    )


def tracking_table(panel: Panel, context: Context) -> Table:
    """Each estimate of the ratio beside the oracle's, one pair per cell."""
    shown = primary(panel)
    oracle, plain = shown.column(ORACLE, "ratio"), shown.column(ZERO_SHOT)
    rows = []
    for method in (m for m in ESTIMATES if m in panel.methods):
        ratio = shown.column(method, "ratio")
        both = np.isfinite(ratio) & np.isfinite(oracle)
        if not both.any():
            continue
        rho = spearman(ratio, oracle, shown.dataset)
        given = spearman(ratio, oracle, shown.dataset, plain)
        error = float(np.abs(ratio - oracle)[both].mean())
        means = (number(float(ratio[both].mean()), 3), number(float(oracle[both].mean()), 3))
        rows.append((panel.titles[method], *means, number(error, 3), interval(rho), interval(given), count(both.sum())))
    return Table(
        key="ratio_tracking",
        title="Estimated against oracle ratio",
        columns=("estimate", "mean λ", "mean oracle λ", "mean |error|", "Spearman", "given zero-shot", "n"),
        rows=tuple(rows),
        caption=sentences(
            f"Tier {focus(panel).tier}, one pair per cell, {counted(shown)}; per-class ratios are averaged. Spearman's "
            "rho with cluster-bootstrap Student-t intervals over datasets (10,000 resamples, ranks taken anew), then "
            "with the ranks of zero-shot accuracy taken out.",
            left_out(panel, shown),
            missing(panel, (ORACLE,)),
            provenance(panel),
        ),
    )


def _by_draw(panel: Panel) -> dict[tuple, np.ndarray]:
    """Zero-shot accuracy, d², oracle and LOO ratio of every (dataset, backbone, K, seed)."""
    columns = [panel.column(ZERO_SHOT), panel.d2, panel.column(ORACLE, "ratio"), panel.column(LOO, "ratio")]
    values = np.stack(columns, axis=1)
    keys = zip(panel.dataset.tolist(), panel.backbone.tolist(), panel.shots.tolist(), panel.seed.tolist(), strict=True)
    return dict(zip(keys, values, strict=True))
