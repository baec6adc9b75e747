"""What a shift common to all prototypes does to decisions: nothing, or a rigid translation (Theorem 1)."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import squared_norms
from kshot.theory import pairs
from kshot.theory.values import Values, require_positive
from kshot.types import Array


def inner_product_scores(X: Float[Array, "N d"], prototypes: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """x·p_c: score differences, and so decisions, ignore a common shift of the prototypes (i)."""
    return X @ prototypes.T


def nearest_prototype_scores(X: Float[Array, "N d"], prototypes: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """−|x − p_c|²: shifting every prototype by Delta equals shifting every input by −Delta (ii)."""
    return 2 * X @ prototypes.T - squared_norms(prototypes) - squared_norms(X)[:, None]


def decisive_part(offset: Float[Array, " d"], prototypes: Float[Array, "C d"]) -> Float[Array, " d"]:
    """The projection of an offset on span{p_c − p_c'}: all of it that nearest-prototype risk can see (ii)."""
    differences = (prototypes - prototypes.mean(axis=0)).T
    basis, weights, _ = np.linalg.svd(differences, full_matrices=False)
    basis = basis[:, weights > weights.max() * max(differences.shape) * np.finfo(weights.dtype).eps]
    return basis @ (basis.T @ offset)


def expected_squared_overlap(offset2: Values, w2: Values, d: int) -> Values:
    """E⟨Delta, w⟩² = |Delta|²·|w|²/d for an isotropic Delta (iii)."""
    return offset2 * w2 / d


def squared_cosines(offset: Float[Array, " d"], prototypes: Float[Array, "C d"]) -> Float[Array, " P"]:
    """cos²(Delta, p_c − p_c') of every pair; about 1/d in generic position. Equal prototypes give 0."""
    length2 = float(offset @ offset)
    require_positive(length2, "|offset|²")
    centred = prototypes - prototypes.mean(axis=0)
    along = centred @ offset
    overlap, w2 = pairs.pair_products(np.outer(along, along)), pairs.pair_products(centred @ centred.T)
    return np.where(w2 > 0, overlap / (np.where(w2 > 0, w2, 1) * length2), 0.0)
