"""Effect of a shift common to all prototypes on decisions: none, or a rigid translation (paper, Theorem 1)."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import squared_norms
from kshot.theory import values
from kshot.theory.values import Values
from kshot.types import Array


def inner_product_scores(X: Float[Array, "N d"], prototypes: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """x·p_c: score differences, and so decisions, ignore a common shift of the prototypes (i)."""
    return X @ prototypes.T


def nearest_prototype_scores(X: Float[Array, "N d"], prototypes: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """−|x − p_c|²: shifting every prototype by Delta equals shifting every input by −Delta (ii)."""
    return 2 * X @ prototypes.T - squared_norms(prototypes) - squared_norms(X)[:, None]


def decisive_part(offset: Float[Array, " d"], prototypes: Float[Array, "C d"]) -> Float[Array, " d"]:
    """Projection of an offset on span{p_c − p_c'}, the only part that changes nearest-prototype decisions (ii)."""
    differences = (prototypes - prototypes.mean(axis=0)).T
    basis, weights, _ = np.linalg.svd(differences, full_matrices=False)
    basis = basis[:, weights > weights.max() * max(differences.shape) * np.finfo(weights.dtype).eps]
    return basis @ (basis.T @ offset)


def expected_squared_overlap(offset2: Values, w2: Values, d: int) -> Values:
    """E⟨Delta, w⟩² = |Delta|²·|w|²/d for an isotropic Delta (iii)."""
    return offset2 * w2 / d


def squared_cosines(offset: Float[Array, " d"], prototypes: Float[Array, "C d"]) -> Float[Array, " P"]:
    """cos²(Delta, p_c − p_c') of every pair; about 1/d for a random direction, 0 for equal prototypes."""
    length2 = float(offset @ offset)
    values.require_positive(length2, "|offset|²")
    centred = prototypes - prototypes.mean(axis=0)
    along = centred @ offset
    overlap, w2 = values.pair_products(np.outer(along, along)), values.pair_products(centred @ centred.T)
    return np.where(w2 > 0, overlap / (np.where(w2 > 0, w2, 1) * length2), 0.0)
