"""The common offset Delta: its share of the text–image distance, its direction, and what it costs a blend."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import class_independent_share, class_means, common_offset, squared_norms
from kshot.theory.probes.blends import blend_accuracy, oracle_ratio, prototype_accuracy
from kshot.theory.probes.spread import support_ratios
from kshot.theory.shift import squared_cosines
from kshot.types import Array, Labelled

STEPS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)


def offset_row(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> dict[str, float]:
    """Share, length and direction of Delta; `means` come from the pool (paper, Theorem 1 and its test)."""
    offset = common_offset(means, text)
    residual = text - means - offset
    to_differences = float(squared_cosines(offset, means).mean())
    return {
        "share": class_independent_share(means, text),
        "length": float(np.sqrt(offset @ offset)),
        "residual length": float(np.sqrt(squared_norms(residual).mean())),
        "cos² to class differences": to_differences,
        "cos² to residuals": float(squared_cosines(offset, residual).mean()),
        "cosine to residuals": float(_cosines(offset, residual).mean()),
        "1/d": 1 / means.shape[1],
        "d·cos²": to_differences / (1 / means.shape[1]),
    }


def translation_row(
    support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]
) -> dict[str, float]:
    """Change of accuracy, in points, when every prototype of the oracle blend moves by a·Delta.

    Theorem 1(i) does not hold exactly for cosine scores. Delta comes from outside the support.
    """
    means, population = (class_means(part.X, part.y, len(text)) for part in (support, residue))
    ratio, best = oracle_ratio(test, means, text)
    prototypes, offset = ratio * means + (1 - ratio) * text, common_offset(population, text)
    return {f"a = {a:+.2f}": 100 * (prototype_accuracy(test, prototypes + a * offset) - best) for a in STEPS}


def counterfactual_row(
    support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]
) -> dict[str, float]:
    """Points that James–Stein loses against the oracle ratio, with the text as it is and with Delta subtracted.

    Delta comes from outside the support.
    """
    offset = common_offset(class_means(residue.X, residue.y, len(text)), text)
    real, without = _deficit(support, test, text), _deficit(support, test, text - offset)
    return {"deficit": real, "without offset": without, "recovered": without - real}


def _deficit(support: Labelled, test: Labelled, text: Float[Array, "C d"]) -> float:
    means = class_means(support.X, support.y, len(text))
    best = oracle_ratio(test, means, text)[1]
    return 100 * (blend_accuracy(test, means, text, support_ratios(support, text)) - best)


def _cosines(offset: Float[Array, " d"], rows: Float[Array, "C d"]) -> Float[Array, " C"]:
    """cos(Delta, delta_c) of every class (paper, Cor. 1: eta); 0 where delta_c vanishes."""
    lengths = np.sqrt(squared_norms(rows) * (offset @ offset))
    return np.divide(rows @ offset, lengths, out=np.zeros(len(rows)), where=lengths > 0)
