"""Claims that are judged: the verdict on each, and on all together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from kshot.paper.claims import Claim
from kshot.paper.formulas import Figure
from kshot.stats.bootstrap import Estimate
from kshot.types import Array

AGREES, DIFFERS, CANNOT_TELL, NOT_COMPUTED = VERDICTS = ("agrees", "differs", "cannot tell", "not computed")
# Of 100 comparisons without fault 3 have a claim that differs, 1 fails the test over all claims.
CLAIM_LEVEL, GLOBAL_LEVEL = 0.03, 0.01
# Resampling five draws makes claims look more alike than they are: half of their correlation counts.
CORRELATED = 0.5


@dataclass(frozen=True)
class Comparison:
    """One claim, our figure and theirs; `score` is their difference on the scale of a standard normal (NaN where no
    draw changes the figure), `spread` the standard deviation that chance gives the difference, `freedom` its degrees of
    freedom."""

    claim: Claim
    figure: Figure
    theirs: float
    verdict: str
    why: str = ""
    difference: float = float("nan")
    score: float = float("nan")
    spread: float = 0.0
    freedom: float = 1.0

    @property
    def ours(self) -> Estimate:
        """Our figure with its interval over datasets, where it has one."""
        return self.figure.estimate

    @property
    def computed(self) -> bool:
        return self.figure.known


@dataclass(frozen=True)
class JudgedClaims:
    """All claims judged; `level` is the |score| from which one differs, `expected` how many do so by chance, `together`
    the probability of deviations as large as all of these."""

    lines: Sequence[Comparison]
    level: float
    drawn: int
    together: float
    paired: bool = False
    other: str = "the paper"
    simulated: bool = False
    lacking: tuple[Sequence[str], Sequence[str]] = ((), ())
    nulls: Float[Array, "s c"] = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)

    @property
    def expected(self) -> float:
        from scipy.special import ndtr

        return float(2 * self.drawn * ndtr(-self.level))

    @property
    def differing(self) -> list[Comparison]:
        return [line for line in self.lines if line.verdict == DIFFERS]

    @property
    def same(self) -> bool:
        """Whether these are the same results up to the luck of the draws."""
        return not self.differing and self.together >= GLOBAL_LEVEL
