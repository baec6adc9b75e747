"""CLAP: a class-adaptive linear probe (Silva-Rodríguez et al., 2024), and ZS-LP, the same without penalty."""

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, every_view
from kshot.methods.parameters import Count, NotNegative, Positive, Seed, Share
from kshot.solvers.cosine_probe import anchor_confidence, train_cosine_probe
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.schedule import batches, cosine_rates, steps_per_epoch
from kshot.types import ENCODER_CONSTANTS, Array, Choice, MethodInfo

PAPER = "Silva-Rodríguez et al., A closer look at the few-shot adaptation of large VLMs, CVPR 2024"


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

    Parameters
    ----------
    seed : int
        Of the order of the batches.
    penalty : bool
        Hold the weights near the anchors; without it the head is ZS-LP.
    anchor_scale : float or None
        Norm of the text embedding before it was normalised; None is the encoder's, 10 where none is known.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    epochs : int
        Passes over the shots.
    lr : float
        Largest learning rate.
    warmup_lr : float
        Learning rate of the first epoch.
    momentum : float
        Of SGD, from 0 to 1.
    batch_size : int
        Rows of a step.
    """

    def __init__(
        self,
        seed: Seed = 0,
        penalty: bool = True,
        anchor_scale: Positive | None = None,
        logit_scale: Positive | None = None,
        epochs: Count = 300,
        lr: NotNegative = 0.1,
        warmup_lr: NotNegative = 1e-5,
        momentum: Share = 0.9,
        batch_size: Count = 256,
    ):
        self.seed = seed
        self.penalty = penalty
        self.anchor_scale = anchor_scale
        self.logit_scale = logit_scale
        self.epochs = epochs
        self.lr = lr
        self.warmup_lr = warmup_lr
        self.momentum = momentum
        self.batch_size = batch_size

    @property
    def info(self) -> MethodInfo:
        key, title = ("clap", "CLAP") if self.penalty else ("zs_lp", "ZS-LP")
        return MethodInfo(
            key,
            title,
            frozenset({"text", "support"}),
            1,
            PAPER,
            closed_form=False,
            views=True,
            constants=ENCODER_CONSTANTS,
        )

    def _fit(self, task: Task) -> None:
        X, y = every_view(task)
        penalties = self._penalties(task, X, y)
        steps = steps_per_epoch(len(task.X), self.batch_size)
        weights = train_cosine_probe(
            X,
            y,
            task.anchor_scale * task.text,
            penalties,
            batches(self.seed, len(X), len(task.X), self.batch_size),
            np.repeat(cosine_rates(self.epochs, self.lr, self.warmup_lr), steps),
            scale=task.logit_scale,
            momentum=self.momentum,
        )
        self._set_linear(task.logit_scale * unit_prototypes(weights))

    def _penalties(self, task: Task, X: Float[Array, "M d"], y: Array) -> Float[Array, " C"]:
        self.selected_ = {"seed": Choice(self.seed, "fixed")}
        if not self.penalty:
            return np.zeros(task.n_classes, X.dtype)
        penalties = anchor_confidence(X, y, task.text, task.logit_scale)
        self.selected_["penalties"] = Choice(penalty_summary(penalties), "support")
        return penalties


def penalty_summary(penalties: Float[Array, " C"]) -> dict[str, float]:
    """What a record keeps of the penalties."""
    return {"mean": float(penalties.mean()), "min": float(penalties.min()), "max": float(penalties.max())}
