"""MSE-oracle blend: the error-minimising ratio with population moments from outside the support."""

import numpy as np

from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.blending import blend, ratio_summary
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive
from kshot.solvers.rows import class_counts, squared_norms
from kshot.solvers.shrinkage import optimal_ratio, population_moments
from kshot.stats.selected import RATIO
from kshot.types import Choice, MethodInfo

INFO = MethodInfo(
    key="mse_oracle",
    title="MSE-oracle blend",
    sees=frozenset({"text", "support", "pool"}),
    min_shots=1,
    paper="paper, Prop. 1 with pool moments",
    constants=frozenset({"logit_scale"}),
)


class MSEOracleBlend(Classifier):
    """lambda_c = g²/(g² + v), g² = |t_c − mu*_c|², v = tr Sigma*_c / K.

    Parameters
    ----------
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    def __init__(self, logit_scale: Positive | None = None):
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        assert task.pool is not None
        thin = np.flatnonzero(class_counts(task.pool.y, task.n_classes) < 2)
        if len(thin):
            raise InputError(f"mse_oracle needs two pool images per class; class {thin[0]} has one sample or none.")
        mu_star, trace = population_moments(task.pool.X, task.pool.y, task.n_classes)
        g2 = squared_norms(task.text - mu_star)
        ratios = optimal_ratio(g2, trace / task.counts.astype(g2.dtype))
        self.selected_ = {RATIO: Choice(ratio_summary(ratios), "pool")}
        self._set_linear(blend(task.means, task.text, ratios), scale=task.logit_scale)
