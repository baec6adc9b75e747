"""Each stratum by itself, and two heads picture by picture."""

import numpy as np

from kshot.report.context import Context, Probed
from kshot.report.notes import HOW_TO_PROBE, cells_in_words, left_out, missing
from kshot.report.slices import CLAP, FOLD_GDA, LOO, LPP, ORACLE, ZERO_SHOT, focus, in_stratum, primary
from kshot.report.table import Number, Table, content, count, interval, number, signed
from kshot.stats.bootstrap import finite_mean, finite_median
from kshot.stats.correlation import association
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.paired_tests import sample_contrast
from kshot.stats.panel import Panel

STORED_COLUMNS = ("path/full", "d_eff", "SD λ K=2", "predicted K=2", "SD λ K=16", "predicted K=16")


def strata(panel: Panel, context: Context) -> Table:
    """Each (dataset, backbone): surplus of the probes over the oracle ratio, and the precision of the JS ratio."""
    shown, tier = primary(panel), focus(panel).tier
    pairs = sorted(set(shown.cell_keys(("dataset", "backbone"))))
    probes = [m for m in (CLAP, LPP, FOLD_GDA) if m in panel.methods]
    rows = []
    surplus, noise = (np.full((len(probes), len(pairs)), np.nan) for _ in range(2))
    for j, (dataset, backbone) in enumerate(pairs):
        own = in_stratum(shown, dataset, backbone).with_all((ORACLE, *probes))
        seeds = [own.where(own.seed == seed) for seed in np.unique(own.seed)]
        for i, m in enumerate(probes):
            surplus[i, j] = paired(own, m, ORACLE).mean
            if len(seeds) > 1:
                noise[i, j] = np.std([paired(cells, m, ORACLE).mean for cells in seeds], ddof=1)
        rows.append(
            (
                f"{dataset} · {backbone}",
                number(finite_mean(own.column(ZERO_SHOT))),
                number(100 * finite_mean(own.share)),
                number(context.headroom.get((dataset, backbone)), 2),
                *map(signed, surplus[:, j]),
                *_stored(context.probed, (dataset, backbone, tier)),
                count(len(own)),
            )
        )
    positive = []
    for m, values, spreads in zip(probes, surplus, noise, strict=True):
        if known := np.count_nonzero(np.isfinite(values)):
            median = finite_median(spreads)
            spread = f" (median seed-to-seed SD {median:.2f})" if median == median else ""
            above = f"{np.count_nonzero(values > 0)} of {known} strata{spread}"
            positive.append(f"{panel.titles[m]} is above the oracle ratio in {above}.")
    titles = (panel.titles[m] for m in probes)
    return content(
        ("dataset · backbone", "zero-shot %", "share %", "headroom", *titles, *STORED_COLUMNS, "n"),
        rows,
        [
            *positive,
            _headroom_sentence(shown, context, pairs, surplus),
            left_out(panel, shown),
            f"Tier {tier}; {cells_in_words(shown)}; means over the cells of a stratum where all of these heads "
            "exist, no interval within one cluster. Path/full: what the blend path reaches of the best separation. "
            "d_eff: participation ratio. SD λ: spread of the James–Stein ratio over draws, measured and predicted, "
            "medians over classes" + (f"; {HOW_TO_PROBE}." if not context.probed.values else "."),
            missing(panel, (ORACLE, CLAP, LPP)),
        ],
    )


def _headroom_sentence(shown: Panel, context: Context, strata: list, surplus: np.ndarray) -> str:
    """`surplus` has CLAP's in its first row."""
    if not context.headroom or CLAP not in shown.methods:
        return f"Headroom was not measured; {HOW_TO_PROBE}."
    predicted = np.array([context.headroom.get(stratum, np.nan) for stratum in strata])
    difficulty = np.array([finite_mean(in_stratum(shown, *stratum).column(ZERO_SHOT)) for stratum in strata])
    names = np.array(strata).reshape(-1, 2)
    relation = association(predicted, surplus[0], difficulty, names[:, 0], names[:, 1])
    return (
        f"Headroom against CLAP's surplus: Spearman {interval(relation.rho)}, "
        f"{interval(relation.given_difficulty)} with zero-shot accuracy taken out."
    )


def _stored(probed: Probed, stratum: tuple[str, str, str]) -> list[Number]:
    """What the probes of a stratum say (paper, Table S1)."""
    spreads = [
        Number(probed.at(f"spread.{kind} SD", *stratum, shots), ".1e")
        for shots in (2, 16)
        for kind in ("measured", "predicted")
    ]
    ratio, d_eff = (probed.at(quantity, *stratum) for quantity in ("headroom.path/full", "spread.d_eff"))
    return [number(ratio, 2), number(d_eff, 0), *spreads]


def sample_level(panel: Panel, context: Context) -> Table | str:
    """McNemar's exact test in every cell: in how many of them the test pictures tell two heads apart."""
    shown = primary(panel)
    ranked = [s.method for s in leaderboard(shown).ranked[:2]]
    pairs = [tuple(ranked)] if len(ranked) == 2 else []
    pairs += [(m, ORACLE) for m in (CLAP, LPP, FOLD_GDA, LOO)]
    rows = []
    for first, second in dict.fromkeys(pairs):
        contrast = sample_contrast(shown, first, second)
        if len(contrast.p):
            discordant = 1000 * (contrast.only_first + contrast.only_second).sum() / contrast.pictures.sum()
            names = f"{panel.titles[first]} against {panel.titles[second]}"
            rows.append((names, *map(count, (len(contrast.p), *contrast.decided_for())), number(discordant)))
    if not rows:
        return "no pair of methods has hits in the same cell."
    return content(
        ("pair", "cells", "first better", "second better", "undecided", "disagree per 1,000"),
        rows,
        [
            f"Tier {focus(panel).tier}, 5 % after Holm's correction over the cells of a row. A cell's test asks about "
            "other pictures of the same dataset and the same shots, not about other datasets.",
            left_out(panel, shown),
        ],
    )
