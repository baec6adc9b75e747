"""CLAP: a class-adaptive linear probe (Silva-Rodríguez et al., 2024), and ZS-LP, the same without penalty."""

from dataclasses import replace
from typing import Annotated

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, every_view
from kshot.methods.parameters import (
    AnchorScale,
    BatchSeed,
    BatchSize,
    Epochs,
    LearningRate,
    LogitScale,
    Momentum,
    WarmupRate,
)
from kshot.solvers.cosine_probe import anchor_confidence, train_cosine_probe
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.training import batches, cosine_rates, steps_per_epoch
from kshot.types import Array, MethodInfo

INFO = MethodInfo(
    key="clap",
    title="CLAP",
    paper="Silva-Rodríguez et al., A closer look at the few-shot adaptation of large VLMs, CVPR 2024",
    closed_form=False,
    views=True,
)


class CLAP(Classifier):
    """Cosine softmax trained from the text anchors and held near them, class by class.

    Minimises mean_i CE(tau·cos(x_i, w_c), y_i) + (1/C)·sum_c l_c·|w_c − a_c|² from w_c = a_c: the paper's constrained
    linear probe (Sec. 4) with the class weights of its one outer step, l_c = mean of softmax(tau·cos(x, a))_c over the
    shots of class c, kept fixed as the official code does (commit dbdf4095). Without penalty (`penalty=False`) it is
    the paper's ZS-LP.

    The anchor is a_c = anchor_scale·t_c, anchor_scale being the norm of the encoder's un-normalised text embedding, and
    tau is `logit_scale`. 300 epochs of momentum SGD in batches of 256 whose order comes from `seed`; the head is the
    last state of that trajectory, which is not the optimum. Views are rows of their own; the number of batches counts
    images.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.CLAP().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.88
    """

    seed: BatchSeed = 0
    penalty: Annotated[bool, "Hold the weights near the anchors; without it the head is ZS-LP."] = True
    anchor_scale: AnchorScale = None
    logit_scale: LogitScale = None
    epochs: Epochs = 300
    lr: LearningRate = 0.1
    warmup_lr: WarmupRate = 1e-5
    momentum: Momentum = 0.9
    batch_size: BatchSize = 256

    @info_by_parameters
    def info(self) -> MethodInfo:
        return INFO if self.penalty else replace(INFO, key="zs_lp", title="ZS-LP")

    def _fit(self, task: Task) -> None:
        X, y = every_view(task)
        penalties = self._penalties(task, X, y)
        anchors, scale = task.anchor_scale * task.text, task.logit_scale
        order = batches(self.seed, len(X), len(task.X), self.batch_size)
        rates = cosine_rates(self.epochs, self.lr, self.warmup_lr, steps_per_epoch(len(task.X), self.batch_size))
        weights = train_cosine_probe(X, y, anchors, penalties, order, rates, scale=scale, momentum=self.momentum)
        self._set_linear(task.logit_scale * unit_prototypes(weights))

    def _penalties(self, task: Task, X: Float[Array, "M d"], y: Array) -> Float[Array, " C"]:
        self._select("fixed", seed=self.seed)
        if not self.penalty:
            return np.zeros(task.n_classes, X.dtype)
        penalties = anchor_confidence(X, y, task.text, task.logit_scale)
        self._select("support", penalties=penalty_summary(penalties))
        return penalties


def penalty_summary(penalties: Float[Array, " C"]) -> dict[str, float]:
    """Mean and range of the penalties, for records."""
    return {"mean": float(penalties.mean()), "min": float(penalties.min()), "max": float(penalties.max())}
