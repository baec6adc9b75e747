"""Tip-Adapter, training-free: a cache of the shots added to the zero-shot logits (Zhang et al., 2022)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import AlphaPoints, BetaPoints, LogitScale, NotNegative, Positive
from kshot.solvers.cache import cache_scores, lay_out, search_grid, search_hits
from kshot.solvers.rows import accuracy
from kshot.types import FREE_EVIDENCE, Array, Evidence, Labelled, MethodInfo

INFO = MethodInfo(
    key="tip_adapter",
    title="Tip-Adapter",
    paper="Zhang et al., Tip-Adapter: training-free adaption of CLIP for few-shot classification, ECCV 2022",
    linear=False,
    views=True,
    constants=frozenset({"beta_scale", "alpha_scale"}),
)


class CacheHead(Classifier):
    """Scores of a cache: logit_scale·x·t_c + alpha·sum over the class's keys of exp(−beta(1 − x·key)).

    Its search has beta_points × alpha_points places up to (beta_scale, alpha_scale), beta outermost.
    """

    _like_data = "text_"
    beta_scale: Annotated[
        Positive | None, 'Largest beta of the search; None is the dataset\'s for `tune="test"`, else 12.'
    ] = None
    alpha_scale: Annotated[
        Positive | None, 'Largest alpha of the search; None is the dataset\'s for `tune="test"`, else 10.'
    ] = None
    beta_points: BetaPoints = 200
    alpha_points: AlphaPoints = 20
    logit_scale: LogitScale = None

    def _lay_out(self, task: Task, beta: float, alpha: float) -> None:
        """Keep the shots as keys, laid out (K, C, d) by class."""
        self.keys_, self.filled_, _ = lay_out(average_view(task), task.y, task.n_classes)
        self.text_, self.beta_, self.alpha_ = task.text, beta, alpha

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        return self._scores_at(X, self.keys_, self.beta_, self.alpha_)

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        near = (self.beta_ * (X @ fitted.keys_.flatten(0, 1).T - 1)).exp().unflatten(1, self.filled_.shape)
        return self.alpha_ * (near * fitted.filled_).sum(dim=1) + self.logit_scale_ * (X @ fitted.text_.T)

    def _scores_at(
        self, X: Float[Array, "n d"], keys: Float[Array, "K C d"], beta: float, alpha: float
    ) -> Float[Array, "n C"]:
        scores = cache_scores(X, keys, self.filled_, beta)
        scores *= alpha
        scores += self.logit_scale_ * (X @ self.text_.T)
        return scores

    def _accuracy(self, queries: Labelled, keys: Float[Array, "K C d"], beta: float, alpha: float) -> float:
        return accuracy(self._scores_at(queries.X, keys, beta, alpha), queries.y)

    def _grids(self, task: Task | None = None) -> tuple[Float[Array, " Lb"], Float[Array, " La"]]:
        return (
            search_grid(float(self._set_or_known("beta_scale", task, 12)), self.beta_points),
            search_grid(float(self._set_or_known("alpha_scale", task, 10)), self.alpha_points),
        )

    def _set_or_known(self, name: str, task: Task | None, otherwise: int | float) -> int | float:
        """The caller's parameter, else the dataset's constant."""
        own = getattr(self, name)
        known = {} if task is None else task.constants
        return known.get(name, otherwise) if own is None else own


class TipAdapter(CacheHead):
    """logits = logit_scale·x·t_c + alpha·sum over the class's keys of exp(−beta(1 − x·key)).

    In the paper's words (Sec. 3): affinities A = exp(−beta(1 − f·F_trainᵀ)), logits alpha·A·L_train + f·W_cᵀ.
    (beta, alpha) come from a grid of 200 × 20 that reaches up to (beta_scale, alpha_scale), beta outermost,
    the first maximum: on the test labels (`tune="test"`) as the official code does (commit d0e2d6f), or on the shots
    with each shot's own key taken out (`tune="loo"`); or they are `alpha` and `beta`, by default the authors' starting
    values on ImageNet (`tune="fixed"`). Several views of a shot are averaged into one key. The fitted values are
    `beta_` and `alpha_`, the keys `keys_` (K, C, d).

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.TipAdapter().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.98
    """

    grids: ClassVar = {"alpha": (0.5, 1.17, 2.0, 3.0, 5.0, 10.0), "beta": (0.5, 1.0, 2.0, 5.0, 10.0)}
    tune: Annotated[Literal["loo", "test", "fixed"], "Evidence alpha and beta are chosen on."] = "loo"
    alpha: Annotated[NotNegative, 'Weight of the cache, for `tune="fixed"`.'] = 1.17
    beta: Annotated[NotNegative, 'Sharpness of the affinities, for `tune="fixed"`.'] = 1.0

    @info_by_parameters
    def info(self) -> MethodInfo:
        if self.tune == "fixed":
            return INFO
        if self.tune == "loo":
            return replace(INFO, key="tip_adapter_loo", title="Tip-Adapter (tuned by LOO)", min_shots=2)
        sees: frozenset[Evidence] = frozenset({*FREE_EVIDENCE, "test"})
        return replace(INFO, key="tip_adapter_test", title="Tip-Adapter (test-tuned)", sees=sees)

    def _fit(self, task: Task) -> None:
        self._lay_out(task, float(self.beta), float(self.alpha))
        if self.tune == "fixed":
            self._select("fixed", beta=self.beta_, alpha=self.alpha_)
            return
        if self.tune == "test":
            curve, evidence = self.knob_curve(task, task.test), "test"
        else:
            curve, evidence = self.knob_loo_curve(task), "support"
        best = int(curve.argmax())
        self.beta_, self.alpha_ = self._places(task)[best]
        self._select(evidence, beta=self.beta_, alpha=self.alpha_, accuracy=float(curve[best]))

    def knob_name(self) -> str:
        return "beta, alpha"

    def knob_grid(self) -> Sequence[tuple[float, float]]:
        return self._places()

    def _places(self, task: Task | None = None) -> Sequence[tuple[float, float]]:
        betas, alphas = self._grids(task)
        return [(beta, alpha) for beta in betas.tolist() for alpha in alphas.tolist()]

    def knob_at(self, value: tuple[float, float]) -> "TipAdapter":
        beta, alpha = value
        return self.with_params(tune="fixed", beta=beta, alpha=alpha)

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        table, filled, _ = lay_out(average_view(task), task.y, task.n_classes)
        base = task.logit_scale * (X @ task.text.T)
        betas, alphas = self._grids(task)
        for beta in betas.tolist():
            cache = cache_scores(X, table, filled, beta)
            for alpha in alphas.tolist():
                yield base + alpha * cache

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        table, filled, _ = lay_out(average_view(task), task.y, task.n_classes)
        hits = search_hits(*queries, task.logit_scale * task.text, table, filled, *self._grids(task))
        return hits.ravel() / len(queries.y)

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]:
        keys = average_view(task)
        table, filled, shot = lay_out(keys, task.y, task.n_classes)
        text = task.logit_scale * task.text
        return search_hits(keys, task.y, text, table, filled, *self._grids(task), shot).ravel() / len(task.y)
