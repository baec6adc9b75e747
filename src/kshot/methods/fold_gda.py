"""Fold-GDA: a Gaussian head with text as prior, all its knobs set by exact folds; docs/fold-gda.md."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.methods.base import Classifier
from kshot.methods.clap import CLAP
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import AnchorScale, LogitScale
from kshot.solvers.folds import (
    Fold,
    PrincipalAxes,
    balanced_folds,
    held_out_folds,
    principal_axes,
    ranks_by_text,
    text_prior,
)
from kshot.solvers.ratio_sweep import winning_range, wins_by_weight
from kshot.types import Array, MethodInfo

GAMMAS = np.array([0.1, 0.3, 1, 3, 10, 30, 100])
KAPPAS = np.array([0, 0.5, 1, 2, 4, 8, 16])
ALPHAS = np.logspace(-4, 1, 31)
SMALLEST_WEIGHT = 1e-3
# Enough held-out shots to tell apart two triples whose accuracies differ by half a point.
MOST_SCORED = 4096


class Search(NamedTuple):
    """Correct rows and spread of the scores of every (gamma, kappa, alpha), over `scored` left-out rows."""

    hits: Int[Array, "G Q A"]
    spread: Float[Array, "G Q A"]
    scored: int


class Members(NamedTuple):
    """The averaged head: the weight of each (gamma, kappa) beside the text, at K−1 shots."""

    axes: PrincipalAxes
    text_scores: Float[Array, "N C"]
    shares: Float[Array, "G Q"]

    def held_out(self, folds: Sequence[Fold]) -> Float[Array, "n C"]:
        """Logits of the folds' left-out rows, fold by fold, by the average fitted without them."""
        scores = [self.text_scores[fold.scored] for fold in folds]
        for gamma, of_gamma in zip(GAMMAS.tolist(), self.shares, strict=True):
            if of_gamma.any():
                for logits, fold in zip(scores, held_out_folds(self.axes, folds, gamma), strict=True):
                    for kappa, share in zip(KAPPAS.tolist(), of_gamma.astype(logits.dtype), strict=True):
                        if share:
                            logits += share * fold.scores(kappa)
        return np.concatenate(scores)


class FoldGDA(Classifier):
    """logits = logit_scale·x·t_c + sum over (gamma, kappa) of v·(x·P·mu'_c − ½ mu'_c·P·mu'_c), one linear head.

    P = (S + gamma·(tr S/d)·I)⁻¹, mu' the class means shrunk by kappa pseudo-shots towards re-centred text, and
    alpha weighs the branch. Every triple is scored on folds that leave one shot of every class out, the
    covariance included; the head averages the triples, weighted by accuracy. Several views of
    a shot are averaged into one row. With one shot per class there is nothing to hold out and no covariance: the head
    is CLAP's.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.FoldGDA().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    info = MethodInfo("fold_gda", "Fold-GDA", paper="kshot, docs/fold-gda.md", views=True)
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    def _fit(self, task: Task) -> None:
        if task.counts.max() == 1:
            self._fit_single_shots(task)
        else:
            self.learn(task)

    def learn(self, task: Task) -> Members:
        """Fit a task with two shots of some class, and return the averaged members."""
        X = average_view(task)
        axes = principal_axes(X, task.y, task.text)
        folds = list(balanced_folds(ranks_by_text(X, task.y, task.text), task.y, MOST_SCORED))
        text_scores = X @ (task.logit_scale * task.text).T
        search = self._search(axes, folds, text_scores)
        weights = self._weights(search)
        self._record(search, weights)
        # Divided by the spread, so that a triple does not count more for larger logits.
        votes = weights / search.spread
        shares = (votes * ALPHAS).sum(axis=2) / votes.sum()
        self._set_linear(*_linear_head(axes, task, shots_correction(task.counts) * shares))
        return Members(axes, text_scores, shares)

    def _fit_single_shots(self, task: Task) -> None:
        probe = CLAP().fit(task.X, task.y, text=task.text, views=task.views, constants=task.constants)
        self._select("fixed", single_shots="clap")
        self._set_linear(probe.coef_, probe.intercept_)

    def _search(self, axes: PrincipalAxes, folds: Sequence[Fold], text_scores: Float[Array, "N C"]) -> Search:
        hits = np.zeros((len(GAMMAS), len(KAPPAS), len(ALPHAS)), np.int64)
        moments = np.zeros((3, len(GAMMAS), len(KAPPAS), 1))
        scored = sum(int(np.count_nonzero(fold.scored)) for fold in folds)
        for g, gamma in enumerate(GAMMAS.tolist()):
            for held_out in held_out_folds(axes, folds, gamma):
                base, y = text_scores[held_out.rows], axes.y[held_out.rows]
                for q, kappa in enumerate(KAPPAS.tolist()):
                    extra = held_out.scores(kappa)
                    hits[g, q] += wins_by_weight(*winning_range(base, extra, y), ALPHAS)
                    moments[:, g, q, 0] += _moments(base, extra)
        variance = moments[0] + 2 * ALPHAS * moments[1] + ALPHAS**2 * moments[2]
        return Search(hits, np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny)), scored)

    def _weights(self, search: Search) -> Float[Array, "G Q A"]:
        """exp((accuracy − best)/(½ standard error)), so that triples of equal accuracy within the error all count."""
        best = search.hits.max()
        # Half a row each way keeps the standard error above zero where all or none are right.
        share = (best + 0.5) / (search.scored + 1)
        error = np.sqrt(share * (1 - share) * search.scored)
        weights = np.exp((search.hits - best) / (error / 2))
        weights[weights < SMALLEST_WEIGHT] = 0
        return weights / weights.sum()

    def _record(self, search: Search, weights: Float[Array, "G Q A"]) -> None:
        self._select(
            "support",
            gamma=float(np.exp(np.log(GAMMAS) @ weights.sum(axis=(1, 2)))),
            kappa=float(KAPPAS @ weights.sum(axis=(0, 2))),
            alpha=float(np.exp(np.log(ALPHAS) @ weights.sum(axis=(0, 1)))),
            fold_accuracy=float(search.hits.max() / search.scored),
            triples=int(np.count_nonzero(weights)),
        )


def _moments(base: Float[Array, "n C"], extra: Float[Array, "n C"]) -> tuple[float, float, float]:
    """Sums over rows of the (co)variances across classes of the two branches."""
    C = base.shape[1]
    b, e = base.mean(axis=1), extra.mean(axis=1)
    products = np.vdot(base, base), np.vdot(base, extra), np.vdot(extra, extra)
    means = np.vdot(b, b), np.vdot(b, e), np.vdot(e, e)
    spread = [float(p) / C - float(m) for p, m in zip(products, means, strict=True)]
    return spread[0], spread[1], spread[2]


def shots_correction(counts: Int[Array, " C"]) -> float:
    """K/(K−1), K the harmonic mean where classes are uneven: the paper's step from K−1 to K shots."""
    shots = 1 / np.mean(1 / counts[counts > 1])
    return float(shots / (shots - 1))


def _linear_head(
    axes: PrincipalAxes, task: Task, shares: Float[Array, "G Q"]
) -> tuple[Float[Array, "C d"], Float[Array, " C"]]:
    """Weights and biases of text plus all members; along the axes a member is a scaling of its means."""
    dtype = axes.X.dtype
    prior = text_prior(axes.means, axes.text).means(axes.text)
    inside = np.zeros_like(axes.means)
    bias = np.zeros(len(prior), dtype)
    for gamma, of_gamma in zip(GAMMAS.tolist(), shares, strict=True):
        P = axes.precision(gamma)
        for kappa, share in zip(KAPPAS.tolist(), of_gamma.astype(dtype), strict=True):
            if share:
                w = (task.counts / (task.counts + kappa)).astype(dtype)[:, None]
                means = w * axes.means + (1 - w) * prior
                member = share * means * P
                inside += member
                bias -= np.einsum("cr,cr->c", means, member) / 2
    branch = inside @ axes.basis.T
    return task.logit_scale * task.text + branch, bias - branch @ axes.centre
