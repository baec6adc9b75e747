"""APE, training-free: Tip-Adapter's cache on chosen channels with weighted keys (Zhu et al., 2023)."""

from collections.abc import Sequence
from itertools import product
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.errors import UndefinedError
from kshot.methods.base import Classifier
from kshot.methods.blending import unit_prototypes
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import Count, NotNegative, Positive, check_parameters
from kshot.solvers.cache import cache_scores, lay_out, search_grid, weighted_search_hits
from kshot.solvers.channels import key_divergence, refined_channels
from kshot.types import FREE_EVIDENCE, Array, Choice, Evidence, Labelled, MethodInfo

PAPER = "Zhu et al., Not all features matter: enhancing few-shot CLIP with adaptive prior refinement, ICCV 2023"


class Refined(NamedTuple):
    """Chosen channels, the keys on them in the layout of the cache, and each key's divergence from its text."""

    channels: Int[Array, " Q"]
    keys: Float[Array, "K C Q"]
    filled: Bool[Array, "K C"]
    divergence: Float[Array, "K C"]


class APE(Classifier):
    """logits = logit_scale·x·t_c + alpha·sum over the class's keys of exp(−beta(1 − x'·key'))·exp(gamma·D).

    x' and key' are restricted to the channels in which classes differ most, and normalised again; D is large for
    keys that the text would not call their class. (alpha, beta, gamma) stay at the authors' starting values, or
    come from their grid on the validation split (`tune="val"`): beta outermost, then alpha, then gamma, the first
    maximum. `channels` is how many are kept; None keeps 500 of 1,024, the authors' share on ImageNet. Several
    views of a shot are averaged into one key. The choice lives in the coordinates of the features, so a rotation
    of all features changes the head.

    Parameters
    ----------
    tune : "none" or "val"
        What alpha, beta and gamma are chosen on.
    channels : int or None
        How many channels are kept; None keeps 500 of 1,024.
    similarity_weight : float
        Of the similarity between classes in the choice of channels.
    variance_weight : float
        Of the variance between classes in the choice of channels.
    alpha : float
        Weight of the cache.
    beta : float
        Sharpness of the affinities.
    gamma : float
        How much keys count less that the text would call another class.
    beta_scale : float
        Largest beta of the search.
    alpha_scale : float
        Largest alpha of the search.
    gamma_scale : float
        Largest gamma of the search.
    beta_points : int
        Betas of the search.
    alpha_points : int
        Alphas of the search.
    gamma_points : int
        Gammas of the search.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    grids: ClassVar = {
        "alpha": (0.5, 1.0, 2.0, 3.0, 5.0, 7.0),
        "beta": (0.5, 1.0, 2.0, 3.0, 5.0, 7.0),
        "gamma": (0.0, 0.1, 0.25, 0.5, 0.75, 0.95),
    }
    channels_: Int[Array, " Q"]
    keys_: Float[Array, "K C Q"]
    filled_: Bool[Array, "K C"]
    divergence_: Float[Array, "K C"]
    text_: Float[Array, "C d"]
    alpha_: float
    beta_: float
    gamma_: float
    logit_scale_: float

    def __init__(
        self,
        tune: Literal["none", "val"] = "none",
        channels: Count | None = None,
        similarity_weight: NotNegative = 0.7,
        variance_weight: NotNegative = 0.3,
        alpha: NotNegative = 2.0,
        beta: NotNegative = 1.0,
        gamma: NotNegative = 0.1,
        beta_scale: Positive = 7.0,
        alpha_scale: Positive = 7.0,
        gamma_scale: Positive = 1.0,
        beta_points: Count = 200,
        alpha_points: Count = 20,
        gamma_points: Count = 20,
        logit_scale: Positive | None = None,
    ):
        self.tune = tune
        self.channels = channels
        self.similarity_weight = similarity_weight
        self.variance_weight = variance_weight
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.beta_scale = beta_scale
        self.alpha_scale = alpha_scale
        self.gamma_scale = gamma_scale
        self.beta_points = beta_points
        self.alpha_points = alpha_points
        self.gamma_points = gamma_points
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        key, title = "ape", "APE (training-free)"
        sees: frozenset[Evidence] = FREE_EVIDENCE
        if self.tune == "val":
            key, title = "ape_val", "APE (grid on validation)"
            sees = frozenset({"text", "support", "validation"})
        check_parameters(self)
        known = frozenset({"logit_scale"})
        return MethodInfo(key, title, sees, 1, PAPER, linear=False, views=True, rotation_free=False, constants=known)

    def _fit(self, task: Task) -> None:
        refined = self._refine(task)
        self.channels_, self.keys_, self.filled_, self.divergence_ = refined
        self.text_ = task.text
        values, from_ = (float(self.beta), float(self.alpha), float(self.gamma)), "fixed"
        if self.tune == "val":
            assert task.validation is not None
            curve = self._curve(task, refined, task.validation)
            values, from_ = self.knob_grid()[int(curve.argmax())], "validation"
            self.selected_["accuracy"] = Choice(float(curve.max()), from_)
        self.beta_, self.alpha_, self.gamma_ = values
        named = zip(("beta", "alpha", "gamma"), values, strict=True)
        self.selected_ |= {name: Choice(value, from_) for name, value in named}
        self.selected_["channels"] = Choice(len(refined.channels), "fixed")

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

    def _expects(self) -> tuple[np.dtype, int]:
        return self._fitted_on("text_")

    def knob_name(self) -> str:
        return "beta, alpha, gamma"

    def knob_grid(self) -> Sequence[tuple[float, float, float]]:
        return list(product(*(grid.tolist() for grid in self._grids())))

    def knob_at(self, value: tuple[float, float, float]) -> "APE":
        beta, alpha, gamma = value
        chosen = {"tune": "none", "beta": beta, "alpha": alpha, "gamma": gamma}
        return APE(**{**self.get_params(), **chosen})

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return self._curve(task, self._refine(task), queries)

    def _curve(self, task: Task, refined: Refined, queries: Labelled) -> Float[Array, " L"]:
        betas, alphas, gammas = self._grids()
        hits = weighted_search_hits(
            unit_prototypes(queries.X[:, refined.channels]),
            queries.y,
            task.logit_scale * (queries.X @ task.text.T),
            refined.keys,
            refined.filled,
            betas,
            alphas,
            [np.exp(gamma * refined.divergence) for gamma in gammas.tolist()],
        )
        return hits.ravel() / len(queries.y)

    def _grids(self) -> tuple[Float[Array, " Lb"], Float[Array, " La"], Float[Array, " Lg"]]:
        return (
            search_grid(self.beta_scale, self.beta_points),
            search_grid(self.alpha_scale, self.alpha_points),
            np.arange(self.gamma_points) * self.gamma_scale / self.gamma_points,
        )
