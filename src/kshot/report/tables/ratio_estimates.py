"""The ratio itself: does it move with the prior, and do the estimates follow the oracle?"""

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import cells_in_words, left_out, missing, over_datasets
from kshot.report.slices import JS, LOO, ORACLE, ZERO_SHOT, focus, primary
from kshot.report.table import Table, content, count, interval, number
from kshot.stats.bootstrap import cluster_means
from kshot.stats.correlation import spearman
from kshot.stats.panel import Panel

GENERIC = "photo"
ESTIMATES = (JS, "centred_js_blend", LOO, "loo_blend_kcorr", "mse_oracle")


def prior_upgrade(panel: Panel, context: Context) -> Table | str:
    """What a better prompt changes, paired within (dataset, backbone, K, seed)."""
    known = panel.with_text()
    tiers = known.names("tier")
    if GENERIC not in tiers or len(tiers) < 2:
        return f"it needs tier {GENERIC} and another; these records hold {', '.join(tiers) or 'none'}."
    before = _by_draw(known.where(known.tier == GENERIC))
    rows = []
    for tier in (t for t in tiers if t != GENERIC):
        after = _by_draw(known.where(known.tier == tier))
        shared = sorted(before.keys() & after.keys())
        if not shared:
            continue
        change = np.array([after[draw] - before[draw] for draw in shared])
        # Leave-one-out has no ratio at K = 1, where the others have theirs.
        known_here = np.isfinite(change).any(axis=0) & np.array([True, True, True, False])
        complete = np.isfinite(change[:, known_here]).all(axis=1)
        datasets = np.array([draw[0] for draw in shared])
        zero_shot, d2, oracle, loo = cluster_means(change[complete], datasets[complete])
        cells = (interval(zero_shot), interval(d2, 4), interval(oracle, 3), interval(loo, 3))
        rows.append((f"→ {tier}", *cells, count(zero_shot.n)))
    return content(
        ("tier", "Δ zero-shot, points", "Δ d²", "Δ oracle λ", "Δ LOO λ", "n"),
        rows,
        [
            f"Tier minus {GENERIC}, paired within dataset, backbone, K and seed; {cells_in_words(known)} in all tiers. "
            "n: draws where all of a row's figures exist but the LOO λ, which begins at K = 2.",
            over_datasets(panel),
            missing(panel, (ZERO_SHOT, ORACLE, LOO)),
        ],
    )


def ratio_tracking(panel: Panel, context: Context) -> Table:
    """Each estimate of the ratio beside the oracle's, one pair per cell."""
    shown = primary(panel)
    oracle, plain = shown.column(ORACLE, "ratio"), shown.column(ZERO_SHOT)
    rows = []
    for method in (m for m in ESTIMATES if m in panel.methods):
        ratio = shown.column(method, "ratio")
        both = np.isfinite(ratio) & np.isfinite(oracle)
        if both.any():
            figures = (ratio[both], oracle[both], np.abs(ratio - oracle)[both])
            means = (number(float(values.mean()), 3) for values in figures)
            rhos = (interval(spearman(ratio, oracle, shown.dataset, given)) for given in (None, plain))
            rows.append((panel.titles[method], *means, *rhos, count(both.sum())))
    return content(
        ("estimate", "mean λ", "mean oracle λ", "mean |error|", "Spearman", "given zero-shot", "n"),
        rows,
        [
            f"Tier {focus(panel).tier}, one pair per cell, {cells_in_words(shown)}; means of per-class ratios. "
            "Spearman's rho with cluster-bootstrap Student-t intervals over datasets (10,000 resamples, ranks anew), "
            "then with the ranks of zero-shot accuracy taken out.",
            left_out(panel, shown),
            missing(panel, (ORACLE,)),
        ],
    )


def _by_draw(panel: Panel) -> dict[tuple, np.ndarray]:
    """Zero-shot accuracy, d², oracle and LOO ratio of every (dataset, backbone, K, seed)."""
    columns = [panel.column(ZERO_SHOT), panel.d2, panel.column(ORACLE, "ratio"), panel.column(LOO, "ratio")]
    return dict(zip(panel.cell_keys(("dataset", "backbone", "shots", "seed")), np.stack(columns, axis=1), strict=True))
