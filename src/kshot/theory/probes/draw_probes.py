"""The probes that measure one draw of a stratum. They see test labels: nothing they find may enter a method."""

from collections.abc import Callable
from dataclasses import dataclass

from kshot.data.episode import Revealed
from kshot.solvers.rows import class_means
from kshot.theory.probes.agreement import optimum_row
from kshot.theory.probes.counterfactual import counterfactual_row, with_share
from kshot.theory.probes.objectives import objectives_row
from kshot.theory.probes.per_class import per_class_row
from kshot.theory.probes.section import Row
from kshot.theory.probes.translation import translation_rows
from kshot.types import Evidence

EVERYTHING: frozenset[Evidence] = frozenset({"text", "support", "pool", "test"})


@dataclass(frozen=True)
class DrawProbe:
    """One probe: what it measures, how its table is read, the shots per class it takes, and what follows from means
    over draws only."""

    title: str
    measure: Callable[[Revealed], Row]
    note: str
    least_shots: int = 1
    of_means: Callable[[Row], Row] = lambda means: means


def _translation(draw: Revealed) -> Row:
    """One column per step: the change in points."""
    means, population = (class_means(part.X, part.y, len(draw.text)) for part in (draw.support, draw.pool))
    steps = translation_rows(draw.test, means, draw.text, population)
    return {f"a = {step['a']:+.2f}": step["change"] for step in steps}


DRAW_PROBES = {
    "optimum": DrawProbe(
        "James–Stein against the population's λ*",
        lambda draw: optimum_row(draw.support, draw.pool, draw.text),
        "λ* uses the pool without the support.",
        least_shots=2,
    ),
    "objectives": DrawProbe(
        "Two objectives, one ratio for all classes",
        lambda draw: objectives_row(draw.support, draw.pool, draw.test, draw.text),
        "Least prototype error against most accuracy, and the points that the first costs.",
    ),
    "translation": DrawProbe(
        "Translating every prototype by a·Delta", _translation, "Change of accuracy in points, at the oracle ratio."
    ),
    "counterfactual": DrawProbe(
        "James–Stein without the common offset",
        lambda draw: counterfactual_row(draw.support, draw.pool, draw.test, draw.text),
        "Points below the oracle ratio, with the text as it is and with Delta subtracted.",
        least_shots=2,
        of_means=with_share,
    ),
    "per_class": DrawProbe(
        "One ratio per class",
        lambda draw: per_class_row(draw.support, draw.test, draw.text),
        "Accuracy of the best single ratio, and points gained over it by one ratio per class: fitted and scored on the "
        "same labels, and on different halves. Per-class LOO: gained over one ratio by leave-one-out.",
    ),
}
