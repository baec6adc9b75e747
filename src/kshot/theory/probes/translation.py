"""Does a common shift cost accuracy under cosine scoring, where Theorem 1(i) no longer holds exactly?"""

from jaxtyping import Float

from kshot.solvers.shrinkage import common_offset
from kshot.theory.probes.blend_scores import oracle_ratio, prototype_accuracy
from kshot.theory.probes.section import Row
from kshot.types import Array, Labelled

STEPS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)


def translation_rows(
    test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"], population_means: Float[Array, "C d"]
) -> list[Row]:
    """Accuracy of p_c + a·Delta at the oracle ratio; Delta comes from data outside the support."""
    ratio, best = oracle_ratio(test, means, text)
    prototypes = ratio * means + (1 - ratio) * text
    offset = common_offset(population_means, text)
    rows: list[Row] = []
    for a in STEPS:
        accuracy = prototype_accuracy(test, prototypes + a * offset)
        rows.append({"a": a, "accuracy": 100 * accuracy, "change": 100 * (accuracy - best)})
    return rows
