"""ProKeR: kernel ridge regression around the zero-shot scores (Bendou et al., 2025)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, every_view
from kshot.methods.parameters import BetaPoints, Count, LogitScale, NotNegative, Positive
from kshot.solvers.folds import Fold
from kshot.solvers.kernel_ridge import Spectrum, fit_kernel_ridge, kernel_scores, path_scores, residuals
from kshot.solvers.rows import accuracy
from kshot.types import FREE_EVIDENCE, Array, Labelled, MethodInfo

INFO = MethodInfo(
    key="proker",
    title="ProKeR",
    paper="Bendou et al., ProKeR: a kernel perspective on few-shot adaptation of large VLMs, CVPR 2025",
    linear=False,
    views=True,
)
VALIDATION_INFO = replace(
    INFO, key="proker_val", title="ProKeR (grid on validation)", sees=frozenset({*FREE_EVIDENCE, "validation"})
)
# (beta, lambda) by shots, pre-computed on ImageNet by the authors (configs_proker/hyperparameters.json).
TABLE = {1: (3.0, 0.05), 2: (2.6, 0.05), 4: (1.5, 0.05), 8: (1.66, 0.07), 16: (1.7, 0.1)}


class ProKeR(Classifier):
    """score = x·t_c + k(x, X)·A with (K/lambda + I)·A = Y − X·Tᵀ, k(a, b) = exp(−beta(1 − <a, b>)).

    beta and lambda (`ridge`) come from the authors' table by the number of shots (the largest listed one that is
    not above it), from the parameters where given, or from a grid on the validation split (`tune="val"`): evenly
    spaced, ends included, beta outermost, the first maximum. Views are rows of their own. Logits are logit_scale·score.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.ProKeR().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.82
    """

    grids: ClassVar = {"beta": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0), "ridge": (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)}
    _like_data = "rows_"
    tune: Annotated[Literal["table", "val"], "Beta and ridge by the table or on the validation split."] = "table"
    beta: Annotated[NotNegative | None, "Sharpness of the kernel; None is the table's."] = None
    ridge: Annotated[Positive | None, "Lambda of the ridge; None is the table's."] = None
    beta_low: Annotated[NotNegative, "Smallest beta of the search."] = 0.5
    beta_high: Annotated[NotNegative, "Largest beta of the search."] = 3.0
    beta_points: BetaPoints = 20
    ridge_low: Annotated[Positive, "Smallest ridge of the search."] = 0.001
    ridge_high: Annotated[Positive, "Largest ridge of the search."] = 1.0
    ridge_points: Annotated[Count, "Number of ridges in the search."] = 10
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return VALIDATION_INFO if self.tune == "val" else INFO

    def _fit(self, task: Task) -> None:
        X, y = every_view(task)
        self.beta_, ridge = self._choose(task)
        self.coefficients_ = fit_kernel_ridge(X, residuals(X, y, task.text), self.beta_, ridge)
        self.rows_, self.text_ = X, task.text
        self.scale_ = task.logit_scale

    def _choose(self, task: Task) -> tuple[float, float]:
        if self.tune == "val":
            curve = self.knob_curve(task, task.validation)
            beta, ridge = self.knob_grid()[int(curve.argmax())]
            self._select("validation", beta=beta, ridge=ridge, accuracy=float(curve.max()))
        else:
            beta, ridge = self._table(task)
            self._select("fixed", beta=beta, ridge=ridge)
        return beta, ridge

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        return kernel_scores(X, self.rows_, self.text_, self.coefficients_, self.beta_)

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        return X @ fitted.text_.T + (self.beta_ * (X @ fitted.rows_.T - 1)).exp() @ fitted.coefficients_

    def knob_name(self) -> str:
        return "beta, ridge"

    def knob_grid(self) -> Sequence[tuple[float, float]]:
        betas, ridges = self._grids()
        return [(beta, ridge) for beta in betas for ridge in ridges]

    def _table(self, task: Task) -> tuple[float, float]:
        """beta and lambda of the authors' table, or the parameters of these names if given."""
        shots = len(task.y) // task.n_classes
        beta, ridge = TABLE[max(listed for listed in TABLE if listed <= max(shots, 1))]
        return (beta if self.beta is None else float(self.beta), ridge if self.ridge is None else float(self.ridge))

    def knob_at(self, value: tuple[float, float]) -> "ProKeR":
        beta, ridge = value
        return self.with_params(tune="table", beta=beta, ridge=ridge)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return np.array([accuracy(scores, queries.y) for scores in self._path(task, queries.X)])

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        return (task.logit_scale * scores for scores in self._path(task, X))

    def _path(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        """The scores at every value of the grid; each array is overwritten by the next."""
        rows, y = every_view(task)
        return path_scores(X, rows, residuals(rows, y, task.text), task.text, *self._grids())

    def knob_folds_curve(self, task: Task, folds: Sequence[Fold]) -> Float[Array, " L"]:
        """Exact accuracy on each fold's left-out rows, by coefficients of the other rows, without a refit."""
        rows, y = every_view(task)
        R, base = residuals(rows, y, task.text), rows @ task.text.T
        every = np.arange(len(rows)).reshape(-1, len(task.y))
        groups = [every[:, ~fold.kept].ravel() for fold in folds]
        scored = np.concatenate([np.tile(fold.scored[~fold.kept], len(every)) for fold in folds])
        batches = [np.stack(groups)] if len({len(g) for g in groups}) == 1 else [g[None] for g in groups]
        order = np.concatenate(groups)[scored]
        betas, ridges = self._grids()
        curve = []
        for beta in betas:
            spectrum = Spectrum.of(rows, R, beta)
            for ridge in ridges:
                parts = [spectrum.held_out(R, batch, ridge).reshape(-1, task.n_classes) for batch in batches]
                scores = np.concatenate(parts)[scored] + base[order]
                curve.append(accuracy(scores, y[order]))
        return np.array(curve)

    def _grids(self) -> tuple[list[float], list[float]]:
        return (
            np.linspace(self.beta_low, self.beta_high, self.beta_points).tolist(),
            np.linspace(self.ridge_low, self.ridge_high, self.ridge_points).tolist(),
        )
