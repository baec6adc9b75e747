"""TaskRes: a learnt residual on the text prototypes (Yu et al., 2023)."""

from typing import ClassVar

import numpy as np

from kshot.methods.base import Classifier
from kshot.methods.blending import unit_prototypes
from kshot.methods.evidence import Task, view_by_view
from kshot.methods.parameters import Count, NotNegative, Positive, Seed
from kshot.solvers.residual_probe import train_residual
from kshot.solvers.rows import squared_norms
from kshot.solvers.schedule import batches, cosine_rates, last_state, steps_per_epoch
from kshot.types import ENCODER_CONSTANTS, FREE_EVIDENCE, Choice, MethodInfo

INFO = MethodInfo(
    key="taskres",
    title="TaskRes",
    sees=FREE_EVIDENCE,
    min_shots=1,
    paper="Yu et al., Task residual for tuning vision-language models, CVPR 2023",
    closed_form=False,
    views=True,
    rotation_free=False,
    constants=ENCODER_CONSTANTS,
)
# From so many classes on, the official scripts use a tenth of the rate (ImageNet).
MANY_CLASSES = 1000


class TaskRes(Classifier):
    """logits = logit_scale·cos(x, anchor_scale·t_c + alpha·x_c), the residual x_c trained by Adam from zero.

    The base is not normalised: anchor_scale is the norm of the encoder's un-normalised text embedding, and as Adam
    moves every entry by about the rate whatever the scale, a base of norm 1 would be a method ten times bolder.
    `lr=None` is 2e-3, and 2e-4 from 1,000 classes on; `epochs=None` is 100 up to four shots and 200 above. The
    head is the last state; nothing is selected. Epoch e learns from view e mod V.

    Parameters
    ----------
    seed : int
        Of the order of the batches.
    alpha : float
        Share of the residual in the prototype.
    lr : float or None
        Largest learning rate; None is the official one.
    epochs : int or None
        Passes over the shots; None is the official number.
    anchor_scale : float or None
        Norm of the text embedding before it was normalised; None is the encoder's, 10 where none is known.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    warmup_lr : float
        Learning rate of the first epoch.
    weight_decay : float
        Of the optimiser.
    batch_size : int
        Rows of a step.
    """

    grids: ClassVar = {"alpha": (0.5, 1.0), "lr": (2e-4, 2e-3), "epochs": (50, 100, 200)}

    def __init__(
        self,
        seed: Seed = 0,
        alpha: NotNegative = 0.5,
        lr: NotNegative | None = None,
        epochs: Count | None = None,
        anchor_scale: Positive | None = None,
        logit_scale: Positive | None = None,
        warmup_lr: NotNegative = 1e-5,
        weight_decay: NotNegative = 5e-4,
        batch_size: Count = 256,
    ):
        self.seed = seed
        self.alpha = alpha
        self.lr = lr
        self.epochs = epochs
        self.anchor_scale = anchor_scale
        self.logit_scale = logit_scale
        self.warmup_lr = warmup_lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        n, per_epoch = len(task.y), steps_per_epoch(len(task.y), self.batch_size)
        lr = (2e-4 if task.n_classes >= MANY_CLASSES else 2e-3) if self.lr is None else self.lr
        epochs = (100 if n <= 4 * task.n_classes else 200) if self.epochs is None else self.epochs
        base = task.anchor_scale * task.text
        states = train_residual(
            view_by_view(task),
            task.y,
            base,
            batches(self.seed, n, n, self.batch_size),
            np.repeat(cosine_rates(epochs, lr, self.warmup_lr), per_epoch),
            steps_per_epoch=per_epoch,
            alpha=self.alpha,
            scale=task.logit_scale,
            weight_decay=self.weight_decay,
        )
        residual = last_state(states)
        moved = float(np.sqrt(squared_norms(self.alpha * residual)).mean())
        fixed = {"alpha": self.alpha, "lr": lr, "epochs": epochs, "seed": self.seed}
        self.selected_ = {name: Choice(value, "fixed") for name, value in fixed.items()}
        self.selected_["mean_residual"] = Choice(moved, "support")
        self._set_linear(task.logit_scale * unit_prototypes(base + self.alpha * residual))
