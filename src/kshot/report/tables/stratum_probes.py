"""What the probes measured: pooled over strata, draws and datasets, and for one stratum by shots."""

from collections.abc import Mapping

import numpy as np

from kshot.report.context import Context, Probed, ProbeKey
from kshot.report.notes import HOW_TO_PROBE, over_datasets
from kshot.report.slices import CLAP, JS, LOO, ORACLE, ZERO_SHOT, focus, in_stratum, primary
from kshot.report.table import Number, Table, content, interval
from kshot.stats.bootstrap import cluster_mean, finite_mean, finite_median
from kshot.stats.correlation import association, spearman
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
# Title and caption of the table of one stratum, by probe.
OF_ONE_STRATUM = {
    "offset": (
        "Common offset",
        "Share of the squared text–image distance that all classes have in common; in generic position the squared "
        "cosines are about 1/d.",
    ),
    "headroom": (
        "Headroom over the blend path",
        "Means over class pairs, Gaussian classes with the pool's OAS covariance; errors in per cent.",
    ),
    "spread": (
        "Spread of the James–Stein ratio over draws",
        "Medians over classes; predicted for the pool's covariance, and as if it were isotropic. Draws of K from n "
        "pool pictures per class overlap, which lowers the measured SD by about sqrt(1 − K/n).",
    ),
    "optimum": ("James–Stein against the population's λ*", "λ* uses the pool without the support."),
    "objectives": (
        "Two objectives, one ratio for all classes",
        "Least prototype error against most accuracy, and the points that the first costs.",
    ),
    "translation": ("Translating every prototype by a·Delta", "Change of accuracy in points, at the oracle ratio."),
    "counterfactual": (
        "James–Stein without the common offset",
        "Points below the oracle ratio, with the text as it is and with Delta subtracted.",
    ),
    "per_class": (
        "One ratio per class",
        "Accuracy of the best single ratio, and points gained over it by one ratio per class: fitted and scored on the "
        "same labels, and on different halves. Per-class LOO: gained over one ratio by leave-one-out.",
    ),
}


def probes(panel: Panel, context: Context) -> Table | str:
    """Every probe with its interval over datasets."""
    shown, tier, probed = primary(panel), focus(panel).tier, context.probed.of(panel)
    if not any(probed.values.values()):
        return f"no probes beside these records; {HOW_TO_PROBE}."
    rows = [
        *_shares(panel),
        *((name, interval(probed.pooled(quantity, tier), digits)) for name, quantity, digits in POOLED),
        *_per_class(shown, probed),
        *_spread(probed, tier),
        *_headroom(shown, probed, tier),
        *_tuned_weights(shown),
    ]
    note = f"Tier {tier}, means over strata and draws. The probes see test labels: nothing here may enter a method."
    return content(
        ("quantity", "pooled"), [row for row in rows if row[1].mean == row[1].mean], [note, over_datasets(panel)]
    )


def _shares(panel: Panel) -> list[tuple[str, Number]]:
    """The class-independent share over all cells, by backbone and by tier, in per cent."""
    known = panel.with_text()
    parts = {"class-independent share, %": known}
    for axis in ("backbone", "tier"):
        parts |= {f"share, {name}": known.where(known.cells[axis] == name) for name in known.names(axis)}
    return [(name, interval(cluster_mean(100 * own.share, own.dataset), 1)) for name, own in parts.items()]


def _per_class(shown: Panel, probed: Probed) -> list[tuple[str, Number]]:
    """CLAP against the per-class oracle that was fitted on the other half, and the part of the damage saved."""
    honest = probed.along(shown, "per_class.accuracy on split halves")
    clap = cluster_mean(shown.column(CLAP) - honest, shown.dataset)
    damage = finite_mean(probed.along(shown, "counterfactual.deficit"))
    saved = finite_mean(probed.along(shown, "counterfactual.recovered"))
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
            (f"SD of the James–Stein ratio, K={shots}", Number(finite_median(measured), ".1e")),
            (f"measured / predicted SD, K={shots}", Number(finite_median(measured / predicted), ".2f")),
        ]
    return rows


def _headroom(shown: Panel, probed: Probed, tier: str) -> list[tuple[str, Number]]:
    strata = sorted({key[:2] for key in probed.values.get("headroom.headroom", {}) if key[2] == tier})
    if len(strata) < 3:
        return []
    predicted = np.array([probed.at("headroom.headroom", *s, tier) for s in strata])
    own = [in_stratum(shown, *stratum) for stratum in strata]
    surplus = np.array([paired(cells, CLAP, ORACLE).mean for cells in own])
    difficulty = np.array([finite_mean(cells.column(ZERO_SHOT)) for cells in own])
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
    for backbone in shown.names("backbone"):
        own = shown.where(shown.backbone == backbone)
        alpha = np.array([chosen.get("alpha", np.nan) for chosen in own.selected(TIP)], float)
        for method, name in ((JS, "James–Stein"), (LOO, "leave-one-out")):
            rho = spearman(own.column(method, "ratio"), alpha, own.dataset)
            rows.append((f"{name} ratio against Tip-Adapter's alpha, {backbone}", interval(rho)))
    return rows


def stratum_tables(probed: Probed) -> list[Table]:
    """A table of one stratum for each probe that was measured: means over draws at each shot count."""
    return [
        _of_one_stratum(probed, probe)
        for probe in OF_ONE_STRATUM
        if any(name.startswith(f"{probe}.") for name in probed.values)
    ]


def _of_one_stratum(probed: Probed, probe: str) -> Table:
    own = {q.removeprefix(f"{probe}."): by_key for q, by_key in probed.values.items() if q.startswith(f"{probe}.")}
    shots = sorted({key[3] for by_key in own.values() for key in by_key if key[3]})
    rows = [_with_quotient({name: _mean(by_key, k) for name, by_key in own.items()}) for k in shots or [0]]
    cells = [tuple(Number(v, ".3g" if abs(v) < 100 else ".0f") for v in row.values()) for row in rows]
    if not shots:
        return Table(OF_ONE_STRATUM[probe][0], tuple(rows[0]), tuple(cells), OF_ONE_STRATUM[probe][1])
    by_shots = tuple((str(k), *row) for k, row in zip(shots, cells, strict=True))
    return Table(OF_ONE_STRATUM[probe][0], ("K", *rows[0]), by_shots, OF_ONE_STRATUM[probe][1])


def _mean(by_key: Mapping[ProbeKey, float], shots: int) -> float:
    """Mean over the draws of a shot count, or the value of the whole stratum, which has 0 shots; NaN without either."""
    values = [value for key, value in by_key.items() if key[3] in (0, shots)]
    return float(np.mean(values)) if values else float("nan")


def _with_quotient(means: dict[str, float]) -> dict[str, float]:
    """Add quotients of means, because the deficit of a single draw may be zero."""
    if {"measured SD", "predicted SD"} <= means.keys():
        return means | {"measured/predicted": means["measured SD"] / means["predicted SD"]}
    if "deficit" in means:
        share = -means["recovered"] / means["deficit"] if means["deficit"] else float("nan")
        return means | {"share of damage": share}
    return means
