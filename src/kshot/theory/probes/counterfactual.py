"""How much of what James–Stein loses would be saved if the common offset were not there."""

from jaxtyping import Float

from kshot.solvers.rows import class_means
from kshot.solvers.shrinkage import common_offset
from kshot.theory.probes.blend_scores import blend_accuracy, oracle_ratio
from kshot.theory.probes.section import Row
from kshot.theory.probes.spread import support_ratios
from kshot.types import Array, Labelled


def deficit(support: Labelled, test: Labelled, text: Float[Array, "C d"]) -> float:
    """Accuracy of the James–Stein blend minus that of the oracle ratio, in points."""
    means = class_means(support.X, support.y, len(text))
    best = oracle_ratio(test, means, text)[1]
    return 100 * (blend_accuracy(test, means, text, support_ratios(support, text)) - best)


def counterfactual_row(support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]) -> Row:
    """The deficit with the text as it is and with Delta subtracted. Delta comes from the residue, never from the
    support."""
    offset = common_offset(class_means(residue.X, residue.y, len(text)), text)
    real, without = deficit(support, test, text), deficit(support, test, text - offset)
    return {"deficit": real, "without offset": without, "recovered": without - real}


def with_share(means: Row) -> Row:
    """The part of the damage that would be saved: a quotient of means, because single deficits may be zero."""
    deficit, recovered = float(means["deficit"]), float(means["recovered"])
    return means | {"share of damage": -recovered / deficit if deficit else float("nan")}
