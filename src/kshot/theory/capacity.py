"""Separation of two classes: the best blend against the best linear rule (paper, Theorem 2).

Classes share a covariance Sigma. For a pair, u is the difference of the means and 2·delta the difference of
the text offsets, so that a blend scores along w(s) = u + 2s·delta. Squared margins m² = (u·w)²/(wᵀSigma w)
nest: path ≤ plane span{u, delta} ≤ full, and a margin m errs with probability Φ(−m/2).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.solvers.rows import class_means, shot_numbers
from kshot.theory import values
from kshot.theory.values import Values
from kshot.types import Array

PARALLEL = 1e-12
RESIDUALS_PER_CLASS = 100


@dataclass(frozen=True, slots=True)
class PairForms:
    """Inner products a = (u·u, u·delta), quadratic forms q under Sigma, and uᵀSigma⁻¹u, one per pair."""

    a1: Float[Array, " P"]
    a2: Float[Array, " P"]
    q11: Float[Array, " P"]
    q12: Float[Array, " P"]
    q22: Float[Array, " P"]
    full: Float[Array, " P"]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Squared margins of every pair and the shrinkage s in [0, 1] that reaches the best one on the path."""

    path: Float[Array, " P"]
    plane: Float[Array, " P"]
    full: Float[Array, " P"]
    shrinkage: Float[Array, " P"]


def separation_error(squared_margin: Values) -> Values:
    """Φ(−m/2): balanced error of a linear rule at its best threshold."""
    from scipy.special import ndtr

    return ndtr(-np.sqrt(squared_margin) / 2)


def path_margin(s: Float[Array, " P"], forms: PairForms) -> Float[Array, " P"]:
    """m(w(s)), signed: negative where the blend points away from the class difference."""
    spread = forms.q11 + 4 * s * forms.q12 + 4 * s**2 * forms.q22
    towards = forms.a1 + 2 * s * forms.a2
    # Rounding can leave a vanishing direction with a spread of the order of −eps.
    visible = spread > PARALLEL**2 * (forms.q11 + forms.q22)
    return np.where(visible, towards / np.sqrt(np.where(visible, spread, 1)), 0.0)


def stationary_shrinkage(forms: PairForms) -> Float[Array, " P"]:
    """s* = (a1·q12 − a2·q11)/(2(a2·q12 − a1·q22)), where m² is stationary; 0 where delta is parallel to u."""
    rise = forms.a1 * forms.q12 - forms.a2 * forms.q11
    bend = forms.a2 * forms.q12 - forms.a1 * forms.q22
    curved = np.abs(bend) > PARALLEL * (np.abs(forms.a2 * forms.q12) + forms.a1 * forms.q22)
    return np.where(curved, rise / (2 * np.where(curved, bend, 1)), 0.0)


def plane_squared_margin(forms: PairForms) -> Float[Array, " P"]:
    """max over span{u, delta}: cᵀQ⁻¹c, written as u's share plus that of delta made Sigma-orthogonal to u.

    Where delta is parallel to u the plane is a line and the second share is zero.
    """
    known = forms.q11 > 0
    q11 = np.where(known, forms.q11, 1)
    left = forms.q22 - forms.q12**2 / q11
    extra = (forms.a2 - forms.a1 * forms.q12 / q11) ** 2
    apart = left > PARALLEL * forms.q22
    return np.where(known, forms.a1**2 / q11 + np.where(apart, extra / np.where(apart, left, 1), 0.0), 0.0)


def best_on_path(forms: PairForms) -> tuple[Float[Array, " P"], Float[Array, " P"]]:
    """Largest m² over s in [0, 1] with u·w > 0, and its s: an endpoint or the stationary point (i)."""
    inner = np.clip(stationary_shrinkage(forms), 0, 1)
    candidates = np.stack([np.zeros_like(inner), inner, np.ones_like(inner)])
    margins = np.stack([path_margin(s, forms) for s in candidates])
    best = margins.argmax(axis=0)[None]
    margin = np.take_along_axis(margins, best, axis=0)[0]
    return np.maximum(margin, 0) ** 2, np.take_along_axis(candidates, best, axis=0)[0]


def pair_forms(means: Float[Array, "C d"], text: Float[Array, "C d"], covariance: Float[Array, "d d"]) -> PairForms:
    """Every pair's forms from six C×C Gram matrices; Sigma must be positive definite."""
    from scipy.linalg import solve_triangular

    M = (means - means.mean(axis=0)).astype(np.float64)
    gap = (text - means).astype(np.float64)
    D = (gap - gap.mean(axis=0)) / 2
    factor = _cholesky(covariance.astype(np.float64))
    SM, SD = M @ factor, D @ factor
    white = solve_triangular(factor, M.T, lower=True).T
    return PairForms(
        a1=values.pair_products(M @ M.T),
        a2=values.pair_products(M @ D.T),
        q11=values.pair_products(SM @ SM.T),
        q12=values.pair_products(SM @ SD.T),
        q22=values.pair_products(SD @ SD.T),
        full=values.pair_products(white @ white.T),
    )


def capacity(means: Float[Array, "C d"], text: Float[Array, "C d"], covariance: Float[Array, "d d"]) -> Capacity:
    """The three nested squared margins of all C(C−1)/2 pairs, in the order of `numpy.triu_indices`."""
    forms = pair_forms(means, text, covariance)
    path, shrinkage = best_on_path(forms)
    return Capacity(path, plane_squared_margin(forms), forms.full, shrinkage)


def margin_ratio(found: Capacity) -> Float[Array, " P"]:
    """sqrt(path/full); 1 where the means coincide."""
    apart = found.full > 0
    return np.where(apart, np.sqrt(found.path / np.where(apart, found.full, 1)), 1.0)


def headroom(found: Capacity) -> Float[Array, " P"]:
    """Error of the best blend direction minus error of the best direction: the most a probe can gain."""
    return np.asarray(separation_error(found.path) - separation_error(found.full))


def pooled_covariance(X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int) -> Float[Array, "d d"]:
    """Within-class covariance shared by all classes, shrunk by OAS (Chen et al. 2010) so that it can be inverted.

    It is estimated from x − mean of its class, for the first 100 rows of each class.
    """
    from sklearn.covariance import oas

    order = np.argsort(y, kind="stable")
    kept = order[shot_numbers(y)[order] < RESIDUALS_PER_CLASS]
    X, y = X[kept].astype(np.float64), y[kept]
    residuals = X - class_means(X, y, n_classes)[y]
    if not residuals.any():
        raise InputError("Every image equals its class mean; a covariance needs images that differ.")
    return oas(residuals, assume_centered=True)[0]


def _cholesky(covariance: Float[Array, "d d"]) -> Float[Array, "d d"]:
    eigenvalues = np.linalg.eigvalsh(covariance)
    if not np.allclose(covariance, covariance.T, atol=1e-8 * np.abs(covariance).max()):
        raise InputError("The covariance is not symmetric. Pass X.T @ X / n or an estimate made of it.")
    if eigenvalues[0] <= len(eigenvalues) * np.finfo(np.float64).eps * eigenvalues[-1]:
        raise InputError(
            f"The covariance is singular (eigenvalues from {eigenvalues[0]:.3g} to {eigenvalues[-1]:.3g}), so some "
            "margin is infinite. Shrink it first: kshot.theory.capacity.pooled_covariance does."
        )
    return np.linalg.cholesky(covariance)
