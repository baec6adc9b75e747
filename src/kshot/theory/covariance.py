"""The covariance that classes share, from residuals of a pool, shrunk so that it can be inverted."""

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.solvers.rows import class_means
from kshot.types import Array

RESIDUALS_PER_CLASS = 100


def pooled_residuals(
    X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int, per_class: int = RESIDUALS_PER_CLASS
) -> Float[Array, "n d"]:
    """x − mean of its class, for the first `per_class` rows of each class."""
    order = np.argsort(y, kind="stable")
    first = np.searchsorted(y[order], np.arange(n_classes))
    rank = np.arange(len(y)) - first[y[order]]
    kept = order[rank < per_class]
    return X[kept] - class_means(X[kept], y[kept], n_classes)[y[kept]]


def pooled_covariance(
    X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int, per_class: int = RESIDUALS_PER_CLASS
) -> Float[Array, "d d"]:
    """Oracle-approximating shrinkage (Chen et al. 2010) of the pooled within-class covariance."""
    from sklearn.covariance import oas

    residuals = pooled_residuals(X.astype(np.float64), y, n_classes, per_class)
    if not residuals.any():
        raise InputError("Every image equals its class mean; a covariance needs images that differ.")
    return oas(residuals, assume_centered=True)[0]
