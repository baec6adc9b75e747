"""Probes of one stratum: one table per probe, one row per shot count."""

from collections.abc import Mapping

import numpy as np

from kshot.report.context import Probed, ProbeKey
from kshot.report.table import Number, Table

PROBES = {
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


def stratum_tables(probed: Probed) -> list[Table]:
    """Means over draws at each shot count; probes that were not measured have no table."""
    return [_table(probed, probe) for probe in PROBES if any(name.startswith(f"{probe}.") for name in probed.values)]


def _table(probed: Probed, probe: str) -> Table:
    own = {q.removeprefix(f"{probe}."): by_key for q, by_key in probed.values.items() if q.startswith(f"{probe}.")}
    shots = sorted({key[3] for by_key in own.values() for key in by_key if key[3]})
    rows = [_with_quotient({name: _mean(by_key, k) for name, by_key in own.items()}) for k in shots or [0]]
    cells = [tuple(Number(v, ".3g" if abs(v) < 100 else ".0f") for v in row.values()) for row in rows]
    if not shots:
        return Table(PROBES[probe][0], tuple(rows[0]), tuple(cells), PROBES[probe][1])
    by_shots = tuple((str(k), *row) for k, row in zip(shots, cells, strict=True))
    return Table(PROBES[probe][0], ("K", *rows[0]), by_shots, PROBES[probe][1])


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
