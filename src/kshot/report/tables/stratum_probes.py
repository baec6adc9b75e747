"""Probes pooled over strata, draws and datasets."""

import json

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import CLAP, INTERVALS, JS, LOO, ORACLE, ZERO_SHOT, focus, primary, provenance, sentences
from kshot.report.numbers import Number, interval
from kshot.report.probed import HOW_TO_PROBE, Probed
from kshot.report.table import Table, absent_table
from kshot.stats.association import association
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.correlation import spearman
from kshot.stats.leaderboard import paired
from kshot.stats.panel import Panel

TIP = "tip_adapter_test"
# What a row is called, the probe's quantity, and the digits it is written with.
POOLED = (
    ("length of the offset", "offset.length", 2),
    ("cos² of offset and class differences", "offset.cos² to class differences", 4),
    ("d·cos², 1 in generic position", "offset.d·cos²", 2),
    ("cosine of offset and remainders", "offset.cosine to residuals", 3),
    ("prototypes moved by −½ of the offset, points", "translation.a = -0.50", 2),
    ("moved by −¼", "translation.a = -0.25", 2),
    ("moved by ¼", "translation.a = +0.25", 2),
    ("moved by ½", "translation.a = +0.50", 2),
    ("James–Stein − oracle ratio, points", "counterfactual.deficit", 2),
    ("the same without the offset", "counterfactual.without offset", 2),
    ("recovered without the offset", "counterfactual.recovered", 2),
    ("one ratio per class − one ratio: in sample", "per_class.in sample", 2),
    ("on split halves", "per_class.split half", 2),
    ("by leave-one-out − one by leave-one-out", "per_class.per-class LOO", 2),
    ("James–Stein against λ* of the pool: Spearman", "optimum.Spearman", 2),
    ("mean |difference|", "optimum.mean |difference|", 3),
    ("participation ratio", "spread.d_eff", 1),
    ("path / full separation", "headroom.path/full", 3),
    ("headroom, points of error", "headroom.headroom", 2),
)


def probes_table(panel: Panel, context: Context) -> Table:
    """Every probe with its interval over datasets."""
    key, title, columns = "probes", "Probes, pooled over the strata", ("quantity", "pooled")
    shown, tier, probed = primary(panel), focus(panel).tier, context.probed.of(panel)
    if not any(probed.values.values()):
        return absent_table(key, title, f"no probes beside these records; {HOW_TO_PROBE}.")
    rows = [
        *_shares(panel),
        *((name, interval(probed.pooled(quantity, tier), digits)) for name, quantity, digits in POOLED),
        *_per_class(shown, probed),
        *_spread(probed, tier),
        *_headroom(shown, probed, tier),
        *_tuned_weights(shown),
    ]
    return Table(
        key=key,
        title=title,
        columns=columns,
        rows=tuple(row for row in rows if row[1].mean == row[1].mean),
        caption=sentences(
            f"Tier {tier}, means over strata and draws. The probes see test labels: nothing here may enter a method.",
            INTERVALS,
            provenance(panel),
        ),
    )


def _shares(panel: Panel) -> list[tuple[str, Number]]:
    """The class-independent share over all cells, by backbone and by tier, in per cent."""
    known = panel.with_text()
    rows = [("class-independent share, %", interval(cluster_mean(100 * known.share, known.dataset), 1))]
    for axis in ("backbone", "tier"):
        for name in sorted(set(getattr(known, axis).tolist())):
            own = known.where(getattr(known, axis) == name)
            rows.append((f"share, {name}", interval(cluster_mean(100 * own.share, own.dataset), 1)))
    return rows


def _per_class(shown: Panel, probed: Probed) -> list[tuple[str, Number]]:
    """CLAP against the per-class oracle that was fitted on the other half, and the part of the damage saved."""
    honest = probed.along(shown, "per_class.accuracy on split halves")
    clap = cluster_mean(shown.column(CLAP) - honest, shown.dataset)
    damage = _mean(probed.along(shown, "counterfactual.deficit"))
    saved = _mean(probed.along(shown, "counterfactual.recovered"))
    share = -100 * saved / damage if damage else float("nan")
    return [
        ("CLAP − one ratio per class on split halves", interval(clap)),
        ("share of the damage recovered, %", Number(share, ".0f")),
    ]


def _spread(probed: Probed, tier: str) -> list[tuple[str, Number]]:
    """Medians over strata of the medians over classes, as the paper has them."""
    rows = []
    for shots in sorted({key[3] for key in probed.values.get("spread.measured SD", {})}):
        both = {
            key: (value, probed.at("spread.predicted SD", *key))
            for key, value in probed.values["spread.measured SD"].items()
            if key[2] == tier and key[3] == shots
        }
        measured, predicted = np.array(list(both.values())).T if both else (np.array([]), np.array([]))
        rows += [
            (f"SD of the James–Stein ratio, K={shots}", Number(_median(measured), ".1e")),
            (f"measured / predicted SD, K={shots}", Number(_median(measured / predicted), ".2f")),
        ]
    return rows


def _headroom(shown: Panel, probed: Probed, tier: str) -> list[tuple[str, Number]]:
    strata = sorted({key[:2] for key in probed.values.get("headroom.headroom", {}) if key[2] == tier})
    if len(strata) < 3:
        return []
    predicted = np.array([probed.at("headroom.headroom", *s, tier) for s in strata])
    own = [shown.where((shown.dataset == d) & (shown.backbone == b)) for d, b in strata]
    surplus = np.array([paired(cells, CLAP, ORACLE).mean for cells in own])
    difficulty = np.array([_mean(cells.column(ZERO_SHOT)) for cells in own])
    names = np.array(strata)
    relation = association(predicted, surplus, difficulty, names[:, 0], names[:, 1])
    return [
        ("headroom against CLAP's surplus: Spearman", interval(relation.rho)),
        ("given zero-shot accuracy", interval(relation.given_difficulty)),
        ("within datasets, median", Number(relation.within_dataset, "+.2f")),
        ("within backbones, median", Number(relation.within_backbone, "+.2f")),
    ]


def _tuned_weights(shown: Panel) -> list[tuple[str, Number]]:
    """Both validation-free ratios against Tip-Adapter's test-tuned alpha, over the cells of each backbone."""
    if TIP not in shown.methods:
        return []
    rows = []
    alpha = selected_alpha(shown, TIP)
    for backbone in sorted(set(shown.backbone.tolist())):
        own = shown.backbone == backbone
        for method, name in ((JS, "James–Stein"), (LOO, "leave-one-out")):
            rho: Estimate = spearman(shown.column(method, "ratio")[own], alpha[own], shown.dataset[own])
            rows.append((f"{name} ratio against Tip-Adapter's alpha, {backbone}", interval(rho)))
    return rows


def selected_alpha(panel: Panel, method: str) -> np.ndarray:
    """The cache weight that a method chose in each cell; NaN where it chose none."""
    rows, selected = panel.row[:, panel.methods.index(method)], panel.records["selected"]
    chosen = [json.loads(selected[int(row)].as_py() or "{}") if row >= 0 else {} for row in rows]
    return np.array([choice.get("alpha", np.nan) for choice in chosen], float)


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
