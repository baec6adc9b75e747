"""Results of two names exchanged, or of each K written for the next: an exchange is fitted as a multiple of itself."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from kshot.paper.causes.cause import Cause
from kshot.paper.causes.cells import AXES, CellPair
from kshot.paper.causes.fit import fit
from kshot.stats.scores import normal_level
from kshot.types import Array

# False alarms; and the share of an exchange that must be seen.
LEVEL, SEEN = 0.001, (0.6, 1.5)


def best_exchange(cells: CellPair, solved: Float[Array, " N"]) -> Cause | None:
    """Two names of an axis exchanged, everywhere or under one name of another axis."""
    names, codes = cells.labels, cells.codes
    fits, tests = [], 0
    for number, axis in enumerate((*AXES, "method")):
        for order, said in _exchanges(axis, names[axis], cells.theirs.mean.shape[number]):
            pattern = (np.take(cells.theirs.mean, order, axis=number) - cells.theirs.mean)[cells.known]
            pattern = np.nan_to_num(pattern)
            if not pattern.any():
                continue
            everywhere = np.where(pattern != 0, 0, -1)
            for other in ("", *names):
                if other == axis:
                    continue
                code, within = (codes[other], names[other]) if other else (everywhere, [""])
                found = fit(cells, solved, code, len(within), pattern)
                tests += int((found.gain > 0).sum())
                right = (SEEN[0] < found.size) & (found.size < SEEN[1])
                for name in np.flatnonzero(right):
                    mask = (pattern != 0) & (code == name)
                    where = {other: within[name], axis: said} if other else {axis: said}
                    fits.append((found.gain[name], found.score[name], where, mask))
    level = normal_level(LEVEL, tests)
    best = max((one for one in fits if one[1] > level), key=lambda one: one[0], default=None)
    return None if best is None else Cause("swap", best[2], 0.0, float(best[1]), float(best[0]), cells=best[3])


def _exchanges(axis: str, names: Sequence[str], length: int) -> Iterator[tuple[Int[Array, " n"], str]]:
    """Whose results each name of an axis may hold: two names each other's, every K those of the next."""
    for pair in combinations(range(len(names)), 2):
        order = np.arange(length)
        order[list(pair)] = pair[::-1]
        if axis == "method":
            order[[len(names) + one for one in pair]] = [len(names) + one for one in pair[::-1]]
        yield order, " and ".join(names[one] for one in pair)
    if axis == "shots" and length > 2:
        for step in (1, -1):
            yield np.clip(np.arange(length) + step, 0, length - 1), "every K"
