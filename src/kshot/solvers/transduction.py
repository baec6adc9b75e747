"""TransCLIP's block updates (Zanella et al., 2024): assignments, class means and a shared diagonal variance.

All queries are assigned together: z_i ∝ yhat_i^weight · exp(B_i/50), where yhat are the probabilities of a head that
sees each query alone, and B adds to a Gaussian's log-density the assignments of each query's neighbours. Denominators
that cancel in the normalisation of mu are left out.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import class_sums, row_blocks, squared_norms, unit_prototypes
from kshot.types import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NEIGHBOURS = 3
TEMPERATURE = 50
ROUNDS, INNER_ROUNDS = 11, 5


class Assigned(NamedTuple):
    """Class probabilities of the queries, unit class means, variances of the channels."""

    z: Float[Array, "Q C"]
    means: Float[Array, "C d"]
    variances: Float[Array, " d"]


def neighbour_affinity(rows: Float[Array, "M d"], queries: Float[Array, "Q d"]) -> "csr_array":
    """Each row's 2nd to 4th largest cosine to the queries, the lower index first among equals; the rest is 0.

    The largest is dropped in every row: for a query it is the query itself, for a shot its nearest one.
    """
    from scipy.sparse import csr_array

    neighbours = np.empty((len(rows), NEIGHBOURS + 1), np.int64)
    values = np.empty(neighbours.shape, queries.dtype)
    for here in row_blocks(len(rows)):
        cosines = rows[here] @ queries.T
        each = np.arange(len(cosines))
        for place in range(NEIGHBOURS + 1):
            neighbours[here, place] = best = cosines.argmax(axis=1)
            values[here, place] = cosines[each, best]
            cosines[each, best] = -np.inf
    starts = np.arange(len(rows) + 1) * NEIGHBOURS
    shape = (len(rows), len(queries))
    return csr_array((values[:, 1:].ravel(), neighbours[:, 1:].ravel(), starts), shape=shape)


def transduce(
    queries: Float[Array, "Q d"],
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    log_prior: Float[Array, "Q C"],
    *,
    gamma: float,
    prior_weight: float,
    aligned: bool = True,
    start: Assigned | None = None,
    rounds: int = ROUNDS,
    inner_rounds: int = INNER_ROUNDS,
) -> Assigned:
    """The state after the last assignment; the last round updates no means.

    The official code stacks the shots first in the affinity matrix and the queries first in [z; Y], so that rows are
    coupled that do not belong together and the order of the queries matters; `aligned` puts the queries first in both.
    """
    n_queries, n, dtype = len(queries), len(y), queries.dtype
    C = log_prior.shape[1]
    labels = np.zeros((n, C), dtype)
    labels[np.arange(n), y] = 1
    stacked = (queries, X) if aligned else (X, queries)
    affinity = neighbour_affinity(np.concatenate(stacked), queries)
    incoming, outgoing = affinity.T.tocsr(), affinity[:n_queries]
    sums = class_sums(X, y, C)
    shot_weight = TEMPERATURE * gamma / n
    z, means, variances = start or first_assignment(log_prior, sums)
    for turn in range(rounds):
        if turn:
            means = unit_prototypes(z.T @ queries / n_queries + shot_weight * sums, smallest=0.0)
            variances = _variances(queries, z, X, y, means, shot_weight, gamma)
        density = gaussian_density(queries, means, variances)
        for _ in range(inner_rounds):
            neighbours = incoming @ np.concatenate([z, labels]) + outgoing @ z
            z = density + TEMPERATURE / (2 * NEIGHBOURS) * neighbours
            z /= TEMPERATURE
            z += prior_weight * log_prior
            z -= z.max(axis=1, keepdims=True)
            np.exp(z, out=z)
            z /= z.sum(axis=1, keepdims=True)
    return Assigned(z, means, variances)


def first_assignment(log_prior: Float[Array, "Q C"], sums: Float[Array, "C d"]) -> Assigned:
    """The other head's probabilities, unit means of the shots, and the variance 1/d in every channel."""
    d = sums.shape[1]
    return Assigned(np.exp(log_prior), unit_prototypes(sums, smallest=0.0), np.full(d, 1 / d, sums.dtype))


def gaussian_density(
    queries: Float[Array, "Q d"], means: Float[Array, "C d"], variances: Float[Array, " d"]
) -> Float[Array, "Q C"]:
    """−½·sum_k (q_k − mu_ck)²/s_k without the part that all classes of a query share."""
    scaled = means / variances
    density = queries @ scaled.T
    density -= np.einsum("cd,cd->c", means, scaled) / 2
    return density


def _variances(
    queries: Float[Array, "Q d"],
    z: Float[Array, "Q C"],
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    means: Float[Array, "C d"],
    shot_weight: float,
    gamma: float,
) -> Float[Array, " d"]:
    """The mean squared distance to the assigned class means, queries and shots weighted as in the means."""
    mass = z.sum(axis=0)
    around = squared_norms(queries.T).astype(np.float64)
    around -= 2 * np.einsum("cd,cd->d", z.T @ queries, means)
    around += mass @ means**2
    shots = squared_norms((X - means[y]).T)
    variances = (around / len(queries) + shot_weight * shots) / (1 + TEMPERATURE * gamma)
    return np.maximum(variances, np.finfo(X.dtype).tiny).astype(X.dtype)
