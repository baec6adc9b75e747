"""James–Stein blend: the ratio that minimises prototype error, estimated per class (paper, Prop. 2)."""

from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.blending import blend, ratio_summary
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale
from kshot.solvers.rows import common_offset, james_stein_ratio, mean_variances, squared_norms
from kshot.stats.selected import RATIO
from kshot.types import Array, MethodInfo


class JSBlend(Classifier):
    """lambda_c = (1 − v_c/|t_c − mu_c|²)₊.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.JSBlend().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    info = MethodInfo(
        key="js_blend",
        title="James–Stein blend",
        min_shots=2,
        paper="James and Stein, Estimation with quadratic loss, 1961; paper, Eq. 7",
    )
    logit_scale: LogitScale = None

    def _fit(self, task: Task) -> None:
        v = mean_variances(task.X, task.y, task.means)
        ratios = james_stein_ratio(v, squared_norms(self._target(task) - task.means))
        self._select("support", **{RATIO: ratio_summary(ratios)})
        self._set_linear(blend(task.means, task.text, ratios), scale=task.logit_scale)

    def _target(self, task: Task) -> Float[Array, "C d"]:
        return task.text


class CentredJSBlend(JSBlend):
    """The distance is measured after removing the common offset D; the blend keeps the original text.

    Blending with t_c − D instead would be another method: it does not reproduce the published pattern.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.CentredJSBlend().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.90
    """

    info = MethodInfo(
        key="centred_js_blend",
        title="Centred JS blend",
        min_shots=2,
        paper="paper, Sec. 3.4: the common offset is removed from the distance",
    )

    def _target(self, task: Task) -> Float[Array, "C d"]:
        return task.text - common_offset(task.means, task.text)
