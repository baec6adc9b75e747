"""James–Stein blend: the ratio that minimises prototype error, estimated per class (paper, Prop. 2)."""

from kshot.methods.base import Classifier
from kshot.methods.blending import blend, ratio_summary
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive
from kshot.solvers.rows import squared_norms
from kshot.solvers.shrinkage import common_offset, james_stein_ratio, mean_variances
from kshot.stats.selected import RATIO
from kshot.types import Choice, MethodInfo

INFO = MethodInfo(
    key="js_blend",
    title="James–Stein blend",
    sees=frozenset({"text", "support"}),
    min_shots=2,
    paper="James and Stein, Estimation with quadratic loss, 1961; paper, Eq. 7",
    constants=frozenset({"logit_scale"}),
)
CENTRED_INFO = MethodInfo(
    key="centred_js_blend",
    title="Centred JS blend",
    sees=frozenset({"text", "support"}),
    min_shots=2,
    paper="paper, Sec. 3.4: the common offset is removed from the distance",
    constants=frozenset({"logit_scale"}),
)


class JSBlend(Classifier):
    """lambda_c = (1 − v_c/|t_c − mu_c|²)₊.

    Parameters
    ----------
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    centred = False

    def __init__(self, logit_scale: Positive | None = None):
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        return CENTRED_INFO if self.centred else INFO

    def _fit(self, task: Task) -> None:
        target = task.text - common_offset(task.means, task.text) if self.centred else task.text
        v = mean_variances(task.X, task.y, task.means)
        ratios = james_stein_ratio(v, squared_norms(target - task.means))
        self.selected_ = {RATIO: Choice(ratio_summary(ratios), "support")}
        self._set_linear(blend(task.means, task.text, ratios), scale=task.logit_scale)


class CentredJSBlend(JSBlend):
    """The distance is measured after removing the common offset D; the blend keeps the original text.

    Blending with t_c − D instead would be another method: it does not reproduce the published pattern.

    Parameters
    ----------
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    centred = True
