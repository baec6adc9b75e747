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
    left_out,
    missing,
    primary,
    provenance,
    sentences,
)
from kshot.report.numbers import Number, count, interval, number, signed
from kshot.report.probed import HOW_TO_PROBE
from kshot.report.table import Table, absent_table
from kshot.stats.association import association
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.paired_tests import sample_contrast
from kshot.stats.panel import Panel

STORED_COLUMNS = ("path/full", "d_eff", "SD λ K=2", "predicted K=2", "SD λ K=16", "predicted K=16")


def strata_table(panel: Panel, context: Context) -> Table:
    """Each (dataset, backbone): surplus of the probes over the oracle ratio, and the precision of the JS ratio."""
    shown, headroom = primary(panel), dict(context.headroom)
    strata = sorted(set(zip(shown.dataset.tolist(), shown.backbone.tolist(), strict=True)))
    probes = [m for m in (CLAP, LPP, FOLD_GDA) if m in panel.methods]
    rows, surplus = [], {m: [] for m in probes}
    noise: dict[str, list[float]] = {m: [] for m in probes}
    for dataset, backbone in strata:
        own = shown.where((shown.dataset == dataset) & (shown.backbone == backbone))
        own = own.with_all((ORACLE, *probes))
        for m in probes:
            surplus[m].append(paired(own, m, ORACLE).mean)
            by_seed = [paired(own.where(own.seed == s), m, ORACLE).mean for s in np.unique(own.seed)]
            noise[m].append(_seed_noise(by_seed))
        rows.append(
            (
                f"{dataset} · {backbone}",
                number(_mean(own.column(ZERO_SHOT))),
                number(100 * _mean(own.share)),
                number(headroom.get((dataset, backbone)), 2),
                *(signed(surplus[m][-1]) for m in probes),
                *_stored(context, dataset, backbone, focus(panel).tier),
                count(len(own.shots)),
            )
        )
    positive = [
        f"{panel.titles[m]} is above the oracle ratio in {np.count_nonzero(np.array(v) > 0)} of "
        f"{np.count_nonzero(np.isfinite(v))} strata{_spread_over_seeds(noise[m])}."
        for m, v in surplus.items()
        if np.isfinite(v).any()
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
            *STORED_COLUMNS,
            "n",
        ),
        rows=tuple(rows),
        caption=sentences(
            *positive,
            _headroom_sentence(strata, surplus, headroom, shown),
            left_out(panel, shown),
            f"Tier {focus(panel).tier}; {counted(shown)}; means over the cells of a stratum where all of these heads "
            "exist, no interval within one cluster. Path/full: what the blend path reaches of the best separation. "
            "d_eff: participation ratio. SD λ: spread of the James–Stein ratio over draws, measured and predicted, "
            "medians over classes" + (f"; {HOW_TO_PROBE}." if not context.probed.values else "."),
            missing(panel, (ORACLE, CLAP, LPP)),
            provenance(panel),
        ),
    )


def _headroom_sentence(strata: list, surplus: dict[str, list[float]], headroom: dict, panel: Panel) -> str:
    if not headroom or CLAP not in surplus:
        return f"Headroom is not at hand; {HOW_TO_PROBE}."
    predicted = np.array([headroom.get(s, np.nan) for s in strata])
    names = np.array(strata).reshape(-1, 2)
    difficulty = np.array(
        [_mean(panel.column(ZERO_SHOT)[(panel.dataset == d) & (panel.backbone == b)]) for d, b in strata]
    )
    relation = association(predicted, np.array(surplus[CLAP]), difficulty, names[:, 0], names[:, 1])
    return (
        f"Headroom against CLAP's surplus: Spearman {interval(relation.rho)}, "
        f"{interval(relation.given_difficulty)} with zero-shot accuracy taken out."
    )


def _stored(context: Context, dataset: str, backbone: str, tier: str) -> list[Number]:
    """What the probes of a stratum say (paper, Table S1)."""
    where = (dataset, backbone, tier)
    spreads = [
        Number(context.probed.at(f"spread.{kind} SD", *where, shots), ".1e")
        for shots in (2, 16)
        for kind in ("measured", "predicted")
    ]
    ratio, d_eff = (context.probed.at(name, *where) for name in ("headroom.path/full", "spread.d_eff"))
    return [number(ratio, 2), number(d_eff, 0), *spreads]


def _seed_noise(surplus_by_seed: list[float]) -> float:
    return float(np.std(surplus_by_seed, ddof=1)) if len(surplus_by_seed) > 1 else float("nan")


def _spread_over_seeds(noise: list[float]) -> str:
    """Nothing where every stratum has one seed."""
    median = _median(noise)
    return f" (median seed-to-seed SD {median:.2f})" if median == median else ""


def _median(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.median(known)) if known else float("nan")


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
    key, title = "sample_level", "Picture by picture: McNemar's exact test within cells"
    if not rows:
        return absent_table(key, title, "no pair of methods has hits in the same cell.")
    return Table(
        key=key,
        title=title,
        columns=("pair", "cells", "first better", "second better", "undecided", "disagree per 1,000"),
        rows=tuple(rows),
        caption=sentences(
            f"Tier {focus(panel).tier}, 5 % after Holm's correction over the cells of a row. A cell's test asks about "
            "other pictures of the same dataset and the same shots, not about other datasets.",
            left_out(panel, shown),
            provenance(panel),
        ),
    )
