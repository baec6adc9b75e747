"""Reference points of blending: ratios chosen on data that a deployed system would not have."""

import numpy as np

from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.blending import RatioKnob, blend, ratio_summary
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale
from kshot.solvers.ratio_sweep import GRID
from kshot.solvers.rows import class_counts, optimal_ratio, population_moments, squared_norms
from kshot.stats.selected import RATIO, curve_name
from kshot.types import MethodInfo


class OracleBlend(RatioKnob, Classifier):
    """The ratio on the grid with the best test accuracy, the smallest of equals: an upper bound of blending.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.OracleBlend().fit(data.X, data.y, text=data.text, test=data.test)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    info = MethodInfo(
        key="oracle_lambda", title="Oracle ratio", sees=frozenset({"text", "support", "test"}), paper="paper, Sec. 4.3"
    )
    logit_scale: LogitScale = None

    def _fit(self, task: Task) -> None:
        curve = self.knob_curve(task, task.test)
        ratio = float(GRID[curve.argmax()])
        self._select("test", **{RATIO: ratio, curve_name("test"): curve.tolist()})
        self._set_linear(blend(task.means, task.text, ratio), scale=task.logit_scale)


class MSEOracleBlend(Classifier):
    """lambda_c = g²/(g² + v), g² = |t_c − mu*_c|², v = tr Sigma*_c / K, with mu* and Sigma* of the pool.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.MSEOracleBlend().fit(data.X, data.y, text=data.text, pool=data.pool)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    info = MethodInfo(
        key="mse_oracle",
        title="MSE-oracle blend",
        sees=frozenset({"text", "support", "pool"}),
        paper="paper, Prop. 1 with pool moments",
    )
    logit_scale: LogitScale = None

    def _fit(self, task: Task) -> None:
        thin = np.flatnonzero(class_counts(task.pool.y, task.n_classes) < 2)
        if len(thin):
            raise InputError(f"mse_oracle needs two pool images per class; class {thin[0]} has one sample or none.")
        mu_star, trace = population_moments(task.pool.X, task.pool.y, task.n_classes)
        g2 = squared_norms(task.text - mu_star)
        ratios = optimal_ratio(g2, trace / task.counts.astype(g2.dtype))
        self._select("pool", **{RATIO: ratio_summary(ratios)})
        self._set_linear(blend(task.means, task.text, ratios), scale=task.logit_scale)
