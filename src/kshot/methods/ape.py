"""APE, training-free: Tip-Adapter's cache on chosen channels with weighted keys (Zhu et al., 2023)."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.errors import UndefinedError
from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import AlphaPoints, BetaPoints, Count, LogitScale, NotNegative, Positive
from kshot.solvers.cache import (
    cache_scores,
    key_divergence,
    lay_out,
    refined_channels,
    search_grid,
    weighted_search_hits,
)
from kshot.solvers.rows import unit_prototypes
from kshot.types import FREE_EVIDENCE, Array, Labelled, MethodInfo

INFO = MethodInfo(
    key="ape",
    title="APE (training-free)",
    paper="Zhu et al., Not all features matter: enhancing few-shot CLIP with adaptive prior refinement, ICCV 2023",
    linear=False,
    views=True,
    rotation_free=False,
)
VALIDATION_INFO = replace(
    INFO, key="ape_val", title="APE (grid on validation)", sees=frozenset({*FREE_EVIDENCE, "validation"})
)


class Refined(NamedTuple):
    """Chosen channels, the keys on them in the layout of the cache, and each key's divergence from its text."""

    channels: Int[Array, " Q"]
    keys: Float[Array, "K C Q"]
    filled: Bool[Array, "K C"]
    divergence: Float[Array, "K C"]


class APE(Classifier):
    """logits = logit_scale·x·t_c + alpha·sum over the class's keys of exp(−beta(1 − x'·key'))·exp(gamma·D).

    x' and key' are restricted to the channels in which classes differ most, and normalised again; D is large for
    keys that text would classify otherwise. (alpha, beta, gamma) stay at the authors' starting values, or come from
    their grid on the validation split (`tune="val"`): beta outermost, then alpha, then gamma, the first maximum. The
    authors keep 500 of 1,024 channels on ImageNet. Several views of a shot are averaged into one key. The choice lives
    in the coordinates of the features, so a rotation of all features changes the head.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.APE().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.75
    """

    grids: ClassVar = {
        "alpha": (0.5, 1.0, 2.0, 3.0, 5.0, 7.0),
        "beta": (0.5, 1.0, 2.0, 3.0, 5.0, 7.0),
        "gamma": (0.0, 0.1, 0.25, 0.5, 0.75, 0.95),
    }
    _like_data = "text_"
    tune: Annotated[Literal["none", "val"], "Evidence alpha, beta and gamma are chosen on."] = "none"
    channels: Annotated[Count | None, "Channels that are kept; None keeps 500 of 1,024."] = None
    similarity_weight: Annotated[NotNegative, "Weight of the classes' similarity in the choice of channels."] = 0.7
    variance_weight: Annotated[NotNegative, "Weight of the classes' variance in the choice of channels."] = 0.3
    alpha: Annotated[NotNegative, "Weight of the cache."] = 2.0
    beta: Annotated[NotNegative, "Sharpness of the affinities."] = 1.0
    gamma: Annotated[NotNegative, "How much less keys count that text would classify otherwise."] = 0.1
    beta_scale: Annotated[Positive, "Largest beta of the search."] = 7.0
    alpha_scale: Annotated[Positive, "Largest alpha of the search."] = 7.0
    gamma_scale: Annotated[Positive, "Largest gamma of the search."] = 1.0
    beta_points: BetaPoints = 200
    alpha_points: AlphaPoints = 20
    gamma_points: Annotated[Count, "Number of gammas in the search."] = 20
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return VALIDATION_INFO if self.tune == "val" else INFO

    def _fit(self, task: Task) -> None:
        refined = self._refine(task)
        self.channels_, self.keys_, self.filled_, self.divergence_ = refined
        self.text_ = task.text
        self.beta_, self.alpha_, self.gamma_ = float(self.beta), float(self.alpha), float(self.gamma)
        if self.tune == "val":
            curve = self._curve(task, refined, task.validation)
            self.beta_, self.alpha_, self.gamma_ = self.knob_grid()[int(curve.argmax())]
            self._select("validation", accuracy=float(curve.max()))
        from_ = "validation" if self.tune == "val" else "fixed"
        self._select(from_, beta=self.beta_, alpha=self.alpha_, gamma=self.gamma_)
        self._select("fixed", channels=len(refined.channels))

    def _refine(self, task: Task) -> Refined:
        if task.n_classes < 2:
            raise UndefinedError(f"{self.info.key} compares classes; it needs 2, and there is one class.")
        X = average_view(task)
        kept = round(500 * X.shape[1] / 1024) if self.channels is None else self.channels
        weights = self.similarity_weight, self.variance_weight
        channels = refined_channels(X, task.y, task.text, max(1, kept), *weights)
        keys, text = unit_prototypes(X[:, channels]), unit_prototypes(task.text[:, channels])
        table, filled, shot = lay_out(keys, task.y, task.n_classes)
        divergence = np.zeros(filled.shape, X.dtype)
        divergence[shot, task.y] = key_divergence(keys, task.y, text)
        return Refined(channels, table, filled, divergence)

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        weights = np.exp(self.gamma_ * self.divergence_)
        refined = unit_prototypes(X[:, self.channels_])
        scores = cache_scores(refined, self.keys_, self.filled_, self.beta_, weights)
        scores *= self.alpha_
        scores += self.logit_scale_ * (X @ self.text_.T)
        return scores

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        refined = X[:, fitted.channels_]
        refined = refined / refined.norm(dim=1, keepdim=True)
        near = (self.beta_ * (refined @ fitted.keys_.flatten(0, 1).T - 1)).exp().unflatten(1, self.filled_.shape)
        weights = fitted.filled_ * (self.gamma_ * fitted.divergence_).exp()
        return self.alpha_ * (near * weights).sum(dim=1) + self.logit_scale_ * (X @ fitted.text_.T)

    def knob_name(self) -> str:
        return "beta, alpha, gamma"

    def knob_grid(self) -> Sequence[tuple[float, float, float]]:
        return list(product(*(grid.tolist() for grid in self._grids())))

    def knob_at(self, value: tuple[float, float, float]) -> "APE":
        beta, alpha, gamma = value
        return self.with_params(tune="none", beta=beta, alpha=alpha, gamma=gamma)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return self._curve(task, self._refine(task), queries)

    def _curve(self, task: Task, refined: Refined, queries: Labelled) -> Float[Array, " L"]:
        betas, alphas, gammas = self._grids()
        X, base = unit_prototypes(queries.X[:, refined.channels]), task.logit_scale * (queries.X @ task.text.T)
        weights = [np.exp(gamma * refined.divergence) for gamma in gammas.tolist()]
        hits = weighted_search_hits(X, queries.y, base, refined.keys, refined.filled, betas, alphas, weights)
        return hits.ravel() / len(queries.y)

    def _grids(self) -> tuple[Float[Array, " Lb"], Float[Array, " La"], Float[Array, " Lg"]]:
        return (
            search_grid(self.beta_scale, self.beta_points),
            search_grid(self.alpha_scale, self.alpha_points),
            np.arange(self.gamma_points) * self.gamma_scale / self.gamma_points,
        )
