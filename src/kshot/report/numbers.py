"""The figures of a table: numbers until the moment they are shown, and how the values of a metric are written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import SupportsInt

import numpy as np
from jaxtyping import Float

from kshot.stats.bootstrap import Estimate
from kshot.stats.metrics import Metric
from kshot.types import Array

ABSENT = "–"
SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Number:
    """A mean and, where it was estimated over G datasets, its interval; `spec` says how it is written.

    `spec` is a format specification or `SECONDS`; `instead` is shown where there is no number, `mark` behind one.
    """

    mean: float | int
    spec: str = ".1f"
    low: float | None = None
    high: float | None = None
    n: int | None = None
    G: int | None = None
    instead: str = ABSENT
    mark: str = ""

    def __float__(self) -> float:
        return float(self.mean)

    def __str__(self) -> str:
        if self.mean != self.mean:
            return self.instead
        return self._written(self.mean) + self._interval() + self.mark

    @property
    def is_estimate(self) -> bool:
        return self.G is not None

    @property
    def is_count(self) -> bool:
        return self.spec.endswith("d")

    def _interval(self) -> str:
        if not self.is_estimate:
            return ""
        if self.low is None or self.high is None:
            return " [no interval]"
        return f" [{self._written(self.low)}, {self._written(self.high)}]"

    def _written(self, value: float | int) -> str:
        if self.spec == SECONDS:
            return seconds(value)
        # The minus of an exponent is part of how computers write it.
        return re.sub(r"(?<!e)-", "−", format(value, self.spec)).replace("%", " %")


def number(value: float | None, digits: int = 1) -> Number:
    return Number(float("nan") if value is None else float(value), f".{digits}f")


def signed(value: float, digits: int = 2) -> Number:
    return Number(value, f"+.{digits}f")


def count(value: SupportsInt, spec: str = "d") -> Number:
    return Number(int(value), spec)


def interval(estimate: Estimate | None, digits: int = 2, sign: bool = True) -> Number:
    """`+1.92 [+0.87, +2.98]`, or the mean alone where there is no interval."""
    spec = f"{'+' if sign else ''}.{digits}f"
    if estimate is None or not estimate.n:
        return Number(float("nan"), spec, n=0, G=0)
    return Number(estimate.mean, spec, estimate.low, estimate.high, estimate.n, estimate.G)


def marked(cell: Number, mark: str) -> Number:
    return replace(cell, mark=mark)


def seconds(value: float | int) -> str:
    """Three figures, in the unit that suits."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.2g} µs"


def named(metric: Metric, first: bool = False) -> str:
    """`accuracy (%)`; `first` in a sentence."""
    name = metric.title + (" (%)" if metric.scale == 100 else "")
    return name[0].upper() + name[1:] if first else name


def written(metric: Metric, values: Iterable[float]) -> list[Number]:
    return [number(value, metric.digits) for value in values]


def best_of(metric: Metric, values: Float[Array, " n"]) -> float:
    """The best of the known values."""
    return float(np.nanmin(values) if metric.less_is_better else np.nanmax(values))
