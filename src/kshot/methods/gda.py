"""GDA: Gaussian discriminant analysis added to the zero-shot logits (Wang et al., 2024)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, every_view, without_own_image
from kshot.methods.parameters import LogitScale, NotNegative
from kshot.methods.shared_work import once
from kshot.solvers.gaussian import GaussianBranch, alpha_hits, fit_gaussian
from kshot.solvers.rows import class_means
from kshot.stats.selected import curve_name
from kshot.types import FREE_EVIDENCE, Array, Evidence, Labelled, MethodInfo

INFO = MethodInfo(
    key="gda_alpha1",
    title="GDA (alpha=1)",
    paper="Wang et al., A hard-to-beat baseline for training-free CLIP-based adaptation, ICLR 2024",
    views=True,
)
ALPHAS = 10.0 ** np.arange(-4, 3)


class GDA(Classifier):
    """logits = logit_scale·x·t_c + alpha·(x·P·mu_c − ½ mu_c·P·mu_c − log C), one linear head.

    `alpha` is a number, "loo" (grid 1e-4 … 1e2 by decades, leave-one-out on the shots: the held-out
    picture's class mean is refitted, the covariance kept) or "val" (the same grid on validation labels).
    With one shot per class the covariance is zero and the head is zero-shot. Views are rows of their own; in
    leave-one-out all views of a picture leave together, and a class of one picture is not scored.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.GDA().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    alpha: Annotated[
        NotNegative | Literal["loo", "val"], "Weight of the Gaussian branch, or the evidence it is chosen on."
    ] = 1.0
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        if self.alpha == "loo":
            return replace(INFO, key="gda_alpha_loo", title="GDA (alpha by LOO)")
        if self.alpha == "val":
            sees: frozenset[Evidence] = frozenset({*FREE_EVIDENCE, "validation"})
            return replace(INFO, key="gda_alpha_val", title="GDA (alpha on validation)", sees=sees)
        return replace(INFO, key=f"gda_alpha{self.alpha:g}", title=f"GDA (alpha={self.alpha:g})")

    def _fit(self, task: Task) -> None:
        branch = _branch(task)
        alpha = self._choose(task, branch)
        self._set_linear(
            task.logit_scale * task.text + alpha * branch.weights, (alpha * branch.bias).astype(task.X.dtype)
        )

    def _choose(self, task: Task, branch: GaussianBranch) -> float:
        if not isinstance(self.alpha, str):
            self._select("fixed", alpha=float(self.alpha))
            return float(self.alpha)
        if self.alpha == "loo":
            curve, evidence = self._loo_curve(task, branch), "support"
        else:
            curve, evidence = self._curve(task, branch, task.validation), "validation"
        alpha = float(ALPHAS[curve.argmax()])
        self._select(evidence, **{"alpha": alpha, curve_name(evidence): curve.tolist()})
        return alpha

    def _curve(self, task: Task, branch: GaussianBranch, queries: Labelled) -> Float[Array, " L"]:
        return alpha_hits(*queries, task.logit_scale * task.text, branch, ALPHAS) / len(queries.y)

    def _loo_curve(self, task: Task, branch: GaussianBranch) -> Float[Array, " L"]:
        rows = every_view(task)
        scored = task.counts[rows.y] > 1
        if not scored.any():
            return np.zeros(len(ALPHAS))
        chosen = slice(None) if scored.all() else scored
        held_out = without_own_image(task, branch.means)[chosen]
        text = task.logit_scale * task.text
        return alpha_hits(rows.X[chosen], rows.y[chosen], text, branch, ALPHAS, held_out) / scored.sum()

    def knob_name(self) -> str:
        return "alpha"

    def knob_grid(self) -> Sequence[float]:
        return ALPHAS.tolist()

    def knob_at(self, value: float) -> "GDA":
        return self.with_params(alpha=value)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return self._curve(task, _branch(task), queries)

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]:
        return self._loo_curve(task, _branch(task))


def _branch(task: Task) -> GaussianBranch:
    if task.views is None:
        return once("gaussian", lambda: fit_gaussian(task.X, task.y, task.means), task.X, task.y, task.n_classes)
    rows = every_view(task)
    return fit_gaussian(*rows, class_means(*rows, task.n_classes))
