"""Below the means: each stratum, and picture by picture."""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import (
    CLAP,
    FOLD_GDA,
    LOO,
    LPP,
    ORACLE,
    ZERO_SHOT,
    counted,
    focus,
    missing,
    primary,
    provenance,
    sentences,
)
from kshot.report.numbers import Number, count, interval, number, signed
from kshot.report.table import Table
from kshot.stats.correlation import spearman
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.paired_tests import sample_contrast
from kshot.stats.panel import Panel


def strata_table(panel: Panel, context: Context) -> Table:
    """Each (dataset, backbone): surplus of the probes over the oracle ratio, and the precision of the JS ratio."""
    shown, headroom = primary(panel), dict(context.headroom)
    strata = sorted(set(zip(shown.dataset.tolist(), shown.backbone.tolist(), strict=True)))
    probes = [m for m in (CLAP, LPP, FOLD_GDA) if m in panel.methods]
    rows, surplus = [], {m: [] for m in probes}
    for dataset, backbone in strata:
        own = shown.where((shown.dataset == dataset) & (shown.backbone == backbone))
        for m in probes:
            surplus[m].append(paired(own, m, ORACLE).mean)
        rows.append(
            (
                f"{dataset} · {backbone}",
                number(float(own.column(ZERO_SHOT).mean())),
                number(100 * _mean(own.share)),
                number(headroom.get((dataset, backbone)), 2),
                *(signed(surplus[m][-1]) for m in probes),
                *(_seed_spread(own, k) for k in (2, 16)),
                count(len(own.shots)),
            )
        )
    positive = [
        f"{panel.titles[m]} is above the oracle ratio in {np.count_nonzero(np.array(v) > 0)} of "
        f"{np.count_nonzero(np.isfinite(v))} strata."
        for m, v in surplus.items()
    ]
    return Table(
        key="strata",
        title="Strata: surplus over the oracle ratio (percentage points)",
        columns=(
            "dataset · backbone",
            "zero-shot %",
            "share %",
            "headroom",
            *(panel.titles[m] for m in probes),
            "SD λ K=2",
            "SD λ K=16",
            "n",
        ),
        rows=tuple(rows),
        caption=sentences(
            *positive,
            _headroom_sentence(strata, surplus, headroom, shown),
            f"Tier {focus(panel).tier}; {counted(shown)}; means over the cells of a stratum, no interval within one "
            "cluster. SD λ: seed-to-seed spread of the James–Stein ratio.",
            missing(panel, (ORACLE, CLAP, LPP)),
            provenance(panel),
        ),
    )


def _headroom_sentence(strata: list, surplus: dict[str, list[float]], headroom: dict, panel: Panel) -> str:
    if not headroom or CLAP not in surplus:
        return "Headroom is not at hand; `kshot report --headroom` computes it from the features."
    predicted = np.array([headroom.get(s, np.nan) for s in strata])
    names = np.array([s[0] for s in strata])
    difficulty = np.array(
        [
            np.mean(panel.column(ZERO_SHOT)[(panel.dataset == d) & (panel.backbone == b)])
            if len(panel.shots)
            else np.nan
            for d, b in strata
        ]
    )
    plain = spearman(predicted, np.array(surplus[CLAP]), names)
    partial = spearman(predicted, np.array(surplus[CLAP]), names, difficulty)
    return (
        f"Headroom against CLAP's surplus: Spearman {interval(plain)}, {interval(partial)} with zero-shot accuracy "
        "taken out."
    )


def _seed_spread(panel: Panel, shots: int) -> Number:
    values = panel.lambda_js[panel.shots == shots]
    known = np.count_nonzero(np.isfinite(values)) > 1
    return Number(float(values.std(ddof=1)) if known else float("nan"), ".1e")


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def sample_table(panel: Panel, context: Context) -> Table:
    """McNemar's exact test in every cell: where do pictures, not datasets, tell two heads apart?"""
    shown = primary(panel)
    ranked = [s.method for s in leaderboard(shown).ranked[:2]]
    pairs = [tuple(ranked)] if len(ranked) == 2 else []
    pairs += [(m, ORACLE) for m in (CLAP, LPP, FOLD_GDA, LOO) if {m, ORACLE} <= set(panel.methods)]
    rows = []
    for first, second in dict.fromkeys(pairs):
        contrast = sample_contrast(shown, first, second)
        if not len(contrast.p):
            continue
        discordant = 1000 * (contrast.only_first + contrast.only_second).sum() / contrast.pictures.sum()
        names = f"{panel.titles[first]} against {panel.titles[second]}"
        rows.append((names, *map(count, (len(contrast.p), *contrast.decided_for())), number(discordant)))
    return Table(
        key="sample_level",
        title="Picture by picture: McNemar's exact test within cells",
        columns=("pair", "cells", "first better", "second better", "undecided", "disagree per 1,000"),
        rows=tuple(rows),
        caption=sentences(
            f"Tier {focus(panel).tier}, 5 % after Holm's correction over the cells of a row. A cell's test asks about "
            "other pictures of the same dataset and the same shots, not about other datasets.",
            "" if rows else "No pair of methods has hits in the same cell.",
            provenance(panel),
        ),
    )
