"""Leaving shots out: which ones, and Gaussian heads fitted without them in closed form.

Folds that leave shots out.

Fold j leaves out shot j of every class, so that all classes compete with equally many. Two rules number the shots.
`shot_numbers` (of `rows`) takes them as they come, which needs nothing but labels. `ranks_by_text` sorts them by
closeness to their class's text, so that the order in which shots were given does not matter; it needs text.

Exact held-out scores of a Gaussian head whose class means lean on text; derivation in docs/fold-gda.md.

Folds are balanced: all classes compete with one shot fewer. The row being
scored has shaped the covariance S = ZᵀZ/(N−C) as well; with z = x − mu_y and R = S + ridge·I taking it out is a
rank-one change of the precision P = R⁻¹,

    P₋ = P + beta·P z zᵀ P,   beta = k/(1 − k·zᵀPz),   k = n/((n−1)(N−C)),

so every class's score is corrected by products with z alone. All vectors live in the eigenbasis of S, centred
at the mean of the class means (a shift common to rows and means moves all scores of a row alike): one
decomposition serves every ridge, and P is a scaling of the axes.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.rows import class_counts, class_means, shot_numbers, span_basis, squared_norms
from kshot.types import Array


class Fold(NamedTuple):
    """Rows to learn from and left-out rows to score."""

    kept: Bool[Array, " N"]
    scored: Bool[Array, " N"]


def ranks_by_text(X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"]) -> Int[Array, " N"]:
    """The number of each shot within its class, the closest to the class's text first."""
    order = np.lexsort((-np.einsum("nd,nd->n", X, text[y]), y))
    numbers = np.empty(len(y), np.int64)
    numbers[order] = shot_numbers(y[order])
    return numbers


def has_siblings(y: Int[Array, " N"]) -> Bool[Array, " N"]:
    """Rows whose class has another shot; a class's only shot cannot be left out."""
    return np.bincount(y)[y] > 1


def balanced_folds(number: Int[Array, " N"], y: Int[Array, " N"], most_scored: int | None = None) -> Iterator[Fold]:
    """As many folds as the largest class has shots; every shot with a sibling is scored in exactly one.

    A class with fewer shots than there are folds starts over, and so loses one shot in each of them as well. Where
    about `most_scored` rows are enough, folds at equal distances stand for all.
    """
    siblings = has_siblings(y)
    counts = np.bincount(y)[y]
    folds = int(number.max()) + 1
    taken = folds if most_scored is None else min(folds, max(1, round(folds * most_scored / len(y))))
    for fold in ((np.arange(taken) + 0.5) * folds / taken).astype(int).tolist():
        scored = siblings & (number == fold)
        if scored.any():
            yield Fold(~siblings | (number != fold % counts), scored)


class PrincipalAxes(NamedTuple):
    """Rows, class means and centred text along the eigenvectors of the pooled covariance."""

    X: Float[Array, "N r"]
    y: Int[Array, " N"]
    means: Float[Array, "C r"]
    text: Float[Array, "C r"]
    variances: Float[Array, " r"]
    mean_variance: float
    basis: Float[Array, "d r"]
    centre: Float[Array, " d"]

    def precision(self, gamma: float) -> Float[Array, " r"]:
        """The diagonal of P = (S + gamma·(tr S/d)·I)⁻¹."""
        return (1 / (self.variances + gamma * self.mean_variance)).astype(self.X.dtype)


def principal_axes(X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"]) -> PrincipalAxes:
    """Turn to the covariance's eigenvectors; where the shots do not vary the covariance is taken to be the identity."""
    d, dtype = X.shape[1], X.dtype
    means = class_means(X, y, len(text))
    centre = means.mean(axis=0)
    X, means, text = X - centre, means - centre, text - text.mean(axis=0)
    span = span_basis(X, text)
    basis = np.eye(d, dtype=dtype) if span is None else span
    inside = (X - means[y]) @ basis
    freedom = max(1, len(X) - len(text))
    covariance = (inside.T @ inside).astype(np.float64) / freedom
    trace = float(np.trace(covariance))
    if trace <= (8 * np.finfo(dtype).eps) ** 2 * len(X):
        variances, mean_variance = np.ones(basis.shape[1]), 1.0
    else:
        variances, turn = np.linalg.eigh(covariance)
        variances, mean_variance = np.maximum(variances, 0), trace / d
        basis = basis @ turn.astype(dtype)
    return PrincipalAxes(X @ basis, y, means @ basis, text @ basis, variances, mean_variance, basis, centre)


class TextPrior(NamedTuple):
    """prior_c = mean of the class means + slope·(t_c − mean t): text without its common offset and scale."""

    centre: Float[Array, " r"]
    slope: float

    def means(self, text: Float[Array, "C r"]) -> Float[Array, "C r"]:
        return self.centre + text.dtype.type(self.slope) * text


def text_prior(means: Float[Array, "C r"], text: Float[Array, "C r"]) -> TextPrior:
    """Fit the slope by least squares over all classes and axes; text that does not vary has slope 0."""
    spread = float(squared_norms(text).sum(dtype=np.float64))
    shared = float(np.einsum("cr,cr->", means - means.mean(axis=0), text))
    smallest = len(text) * float(np.finfo(text.dtype).eps) ** 2
    return TextPrior(means.mean(axis=0), shared / spread if spread > smallest else 0.0)


def means_without(axes: PrincipalAxes, left: Bool[Array, " N"]) -> tuple[Float[Array, "C r"], Int[Array, " C"]]:
    """Class means and their shots without the rows of a fold, at most one of each class."""
    counts = class_counts(axes.y, len(axes.means))
    means, owner = axes.means.copy(), axes.y[left]
    n = counts[owner].astype(axes.X.dtype)[:, None]
    means[owner] = (n * means[owner] - axes.X[left]) / (n - 1)
    return means, counts - class_counts(owner, len(counts))


class HeldOut(NamedTuple):
    """Products from which the scores of one fold's rows follow for every weight of the text prior."""

    rows: Int[Array, " n"]
    shots: Int[Array, " C"]
    image: Float[Array, "n C"]
    prior: Float[Array, "n C"]
    pull_image: Float[Array, "n C"]
    pull_prior: Float[Array, "n C"]
    pull_own: Float[Array, " n"]
    beta: Float[Array, " n"]
    energies: tuple[Float[Array, " C"], Float[Array, " C"], Float[Array, " C"]]

    def scores(self, kappa: float) -> Float[Array, "n C"]:
        """x·P₋·mu_c − ½ mu_c·P₋·mu_c, mu_c = (n·mean + kappa·prior)/(n + kappa)."""
        w = (self.shots / (self.shots + kappa)).astype(self.image.dtype)
        ii, ip, pp = self.energies
        score = blended(self.image, self.prior, w)
        score -= (w * w * ii + 2 * w * (1 - w) * ip + (1 - w) ** 2 * pp) / 2
        pull = blended(self.pull_image, self.pull_prior, w)
        correction = self.pull_own[:, None] - pull / 2
        correction *= pull
        correction *= self.beta[:, None]
        score += correction
        return score


def blended(image: Float[Array, "n C"], prior: Float[Array, "n C"], w: Float[Array, " C"]) -> Float[Array, "n C"]:
    if np.all(w == 1):
        return image.copy()
    mixed = image - prior
    mixed *= w
    mixed += prior
    return mixed


def held_out_folds(axes: PrincipalAxes, folds: Iterable[Fold], gamma: float) -> Iterator[HeldOut]:
    """For each fold its left-out rows, scored without themselves."""
    fixed = _Fixed.of(axes, gamma)
    for kept, scored in folds:
        yield _held_out(axes, fixed, np.flatnonzero(scored), *means_without(axes, ~kept))


class _Fixed(NamedTuple):
    """What all folds share at one gamma."""

    precision: Float[Array, " r"]
    text: Float[Array, "C r"]
    text_energy: Float[Array, " C"]
    mean_text: Float[Array, "C C"]
    influence: Float[Array, " C"]

    @classmethod
    def of(cls, axes: PrincipalAxes, gamma: float) -> "_Fixed":
        P = axes.precision(gamma)
        text = axes.text * P
        counts = class_counts(axes.y, len(axes.means))
        freedom = max(1, len(axes.y) - len(counts))
        k = counts / (np.maximum(counts - 1, 1) * freedom)
        energy = np.einsum("cr,cr->c", axes.text, text)
        return cls(P, text, energy, axes.means @ text.T, k.astype(P.dtype))


def _held_out(
    axes: PrincipalAxes, fixed: _Fixed, rows: Int[Array, " n"], means: Float[Array, "C r"], shots: Int[Array, " C"]
) -> HeldOut:
    """Three matrix products: rows and z with the means, rows with text; z with text follows from those."""
    x, y = axes.X[rows], axes.y[rows]
    z = x - axes.means[y]
    zP, means_P = z * fixed.precision, means * fixed.precision
    centre, slope = text_prior(means, axes.text)
    centre_P, slope = centre * fixed.precision, x.dtype.type(slope)
    x_text = x @ fixed.text.T
    k = fixed.influence[y]
    return HeldOut(
        rows=rows,
        shots=shots,
        image=x @ means_P.T,
        prior=(x @ centre_P)[:, None] + slope * x_text,
        pull_image=z @ means_P.T,
        pull_prior=(z @ centre_P)[:, None] + slope * (x_text - fixed.mean_text[y]),
        pull_own=np.einsum("nr,nr->n", zP, x),
        beta=k / (1 - k * np.einsum("nr,nr->n", z, zP)),
        energies=(
            np.einsum("cr,cr->c", means, means_P),
            means @ centre_P + slope * np.einsum("cr,cr->c", means, fixed.text),
            centre @ centre_P + 2 * slope * (axes.text @ centre_P) + slope**2 * fixed.text_energy,
        ),
    )
