"""How the values of a metric are named, written and compared."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from kshot.report.numbers import Number, number
from kshot.stats.metrics import Metric
from kshot.types import Array


def named(metric: Metric, first: bool = False) -> str:
    """`accuracy (%)`; `first` in a sentence."""
    name = metric.title + (" (%)" if metric.scale == 100 else "")
    return name[0].upper() + name[1:] if first else name


def written(metric: Metric, values: Iterable[float]) -> list[Number]:
    return [number(value, metric.digits) for value in values]


def best_of(metric: Metric, values: Float[Array, " n"]) -> float:
    """The best of the known values."""
    return float(np.nanmin(values) if metric.less_is_better else np.nanmax(values))
