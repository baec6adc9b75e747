"""The interval on given datasets: over draws of shots and test pictures, which are crossed.

It covers the mean over all draws and all pictures of the same kind on these datasets and says nothing about others.

A bootstrap that draws seeds and pictures with replacement counts the noise of a single answer three times: once with
the seeds, once with the pictures, once by itself. Its variance is known in closed form, so nothing is drawn here, and
that noise is counted once. With A, B and E the mean squares of draws, pictures and what is left, the variance of a mean
over S draws and n pictures is (E + max(A−E, 0) + max(B−E, 0)) / Sn. Student's t has Satterthwaite's degrees of freedom.
Draws that do not differ, as where the shots are the whole pool, add nothing. `tools/one_dataset.py` measures how often
it covers.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, Shaped

from kshot.stats.bootstrap import Estimate, estimate_of
from kshot.stats.panel import Panel
from kshot.types import Array

# Two draws say too little about their spread: an interval from them covers 89 % where draws differ most.
LEAST_DRAWS = 3
# Mean squares of hits are often equal: rounding must not choose the larger one, here or in the page.
TIE = 1 + 1e-6
# Whether each test picture is classified right, cell by cell; None where the hits are not kept.
Hits: TypeAlias = Sequence[Shaped[Array, " _"] | None]


def hits_of(panel: Panel, method: str) -> Hits:
    """A method's hits in every cell, as zeros and ones."""
    packed = panel.recorded(method, "hits")
    return [
        np.unpackbits(np.frombuffer(bits, np.uint8), count=pictures).astype(np.int8) if bits else None
        for bits, pictures in zip(packed, panel.n_test.tolist(), strict=True)
    ]


def on_these_datasets(panel: Panel, first: Hits, second: Hits) -> Estimate | None:
    """Mean difference of accuracies in points over the cells where both are known, with its interval over draws and
    pictures; None where some dataset has fewer than three draws."""
    differences = {
        cell: one - two
        for cell, (one, two) in enumerate(zip(first, second, strict=True))
        if one is not None and two is not None
    }
    names = sorted({str(panel.dataset[cell]) for cell in differences})
    mean = variance = uncertainty = 0.0
    for name in names:
        own = [cell for cell in differences if panel.dataset[cell] == name]
        if len({len(differences[cell]) for cell in own}) > 1:
            return None
        stacked = np.stack([differences[cell] for cell in own])
        found = crossed_variance(stacked, panel.seed[own])
        if found is None:
            return None
        share = len(own) / len(differences)
        mean += 100 * share * float(stacked.mean())
        variance += share**2 * found[0]
        uncertainty += share**4 * found[1]
    if not names:
        return None
    freedom = max(variance**2 / uncertainty, 1.0) if uncertainty else 1.0
    return estimate_of(mean, len(differences), len(names), 100 * float(np.sqrt(variance)), freedom)


def crossed_variance(differences: Shaped[Array, "c n"], seeds: Int[Array, " c"]) -> tuple[float, float] | None:
    """Variance of the mean over cells and pictures, and the sum that Satterthwaite divides its square by."""
    draws, place = np.unique(seeds, return_inverse=True)
    S, (cells, n) = len(draws), differences.shape
    if S < LEAST_DRAWS or n < 2:
        return None
    member = np.zeros((S, cells), np.float32)
    member[place, np.arange(cells)] = S / cells
    # One row a draw: its cells' mean, weighted so that all rows together have the mean over all cells, minus that mean.
    rows = member @ differences.astype(np.float32) - member.sum(axis=1, keepdims=True) * differences.mean()
    by_draw = n * float(np.square(rows.mean(axis=1)).sum())
    by_picture = S * float(np.square(rows.mean(axis=0)).sum())
    left = max(float(np.square(rows).sum()) - by_draw - by_picture, 0.0)
    A, B, E = by_draw / (S - 1), by_picture / (n - 1), left / ((S - 1) * (n - 1))
    variance = (E + max(A - E, 0) + max(B - E, 0)) / (S * n)
    # A mean square that adds nothing is not uncertain either.
    uncertainty = (A > TIE * E) * A**2 / (S - 1) + (B > TIE * E) * B**2 / (n - 1) + E**2 / ((S - 1) * (n - 1))
    return variance, uncertainty / (S * n) ** 2
