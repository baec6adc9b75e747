"""Claims that are judged: the verdict on each, and on all together."""

from collections.abc import Sequence
from dataclasses import dataclass

from kshot.paper.beside import LEVEL, Apart
from kshot.paper.claims import Claim
from kshot.paper.formulas import Figure
from kshot.stats.bootstrap import Estimate

AGREES, DIFFERS, CANNOT_TELL, SHOWN, NOT_COMPARABLE, NOT_COMPUTED = VERDICTS = (
    "agrees", "differs", "cannot tell", "shown", "not comparable", "not computed",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One claim, our figure and theirs; `score` is their difference on the scale of a standard normal (NaN where it is
    not tested or no draw changes it), `spread` the standard deviation that chance gives the difference."""

    claim: Claim
    figure: Figure
    theirs: float
    verdict: str
    why: str = ""
    difference: float = float("nan")
    score: float = float("nan")
    spread: float = 0.0

    @property
    def ours(self) -> Estimate:
        """Our figure with its interval over datasets, where it has one."""
        return self.figure.estimate

    @property
    def computed(self) -> bool:
        return self.figure.computed


@dataclass(frozen=True)
class JudgedClaims:
    """All claims judged. `signs` are plain differences, before any statistics; `p` is the probability that a fault-free
    run lies as far apart, `limit` the |z| beyond which one of `drawn` figures differs by itself, `places` where the
    largest deviations are; `noise` says where variances come from."""

    lines: Sequence[Comparison]
    signs: Sequence[str] = ()
    p: float = 1.0
    limit: float = float("inf")
    drawn: int = 0
    places: Sequence[Apart] = ()
    noise: str = ""
    how: str = ""
    other: str = "the paper"
    simulated: bool = False
    lacking: tuple[Sequence[str], Sequence[str]] = ((), ())

    @property
    def differing(self) -> list[Comparison]:
        return [line for line in self.lines if line.verdict == DIFFERS]

    @property
    def fixed_apart(self) -> list[Comparison]:
        """Figures that no draw changes and that differ."""
        return [line for line in self.differing if line.score != line.score]

    @property
    def same(self) -> bool:
        """Whether these are the same results up to the luck of the draws."""
        return not self.signs and not self.fixed_apart and self.p >= LEVEL
