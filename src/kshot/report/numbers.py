"""How figures are written."""

from kshot.report.table import ABSENT
from kshot.stats.bootstrap import Estimate


def number(value: float | None, digits: int = 1) -> str:
    return ABSENT if value is None or value != value else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def interval(estimate: Estimate | None, digits: int = 2, sign: bool = True) -> str:
    """`+1.92 [+0.87, +2.98]`, or the mean alone where there is no interval."""
    if estimate is None or not estimate.n or estimate.mean != estimate.mean:
        return ABSENT
    shown = signed if sign else number
    if estimate.low is None or estimate.high is None:
        return f"{shown(estimate.mean, digits)} [no interval]"
    return f"{shown(estimate.mean, digits)} [{shown(estimate.low, digits)}, {shown(estimate.high, digits)}]"


def seconds(value: float) -> str:
    """Three figures, in the unit that suits."""
    if value != value:
        return ABSENT
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.2g} µs"
