"""TaskRes: a learnt residual on the text prototypes (Yu et al., 2023)."""

from typing import Annotated, ClassVar

import numpy as np

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, view_by_view
from kshot.methods.parameters import (
    AnchorScale,
    BatchSeed,
    BatchSize,
    Count,
    LogitScale,
    NotNegative,
    WarmupRate,
    WeightDecay,
)
from kshot.solvers.rows import squared_norms, unit_prototypes
from kshot.solvers.text_probe import train_residual
from kshot.solvers.training import batches, cosine_rates, last_state, steps_per_epoch
from kshot.types import MethodInfo

# From so many classes on, the official scripts use a tenth of the rate (ImageNet).
MANY_CLASSES = 1000


class TaskRes(Classifier):
    """logits = logit_scale·cos(x, anchor_scale·t_c + alpha·x_c), the residual x_c trained by Adam from zero.

    The base is not normalised: anchor_scale is the norm of the encoder's un-normalised text embedding, and as Adam
    moves every entry by about the rate whatever the scale, it would move a base of norm 1 ten times as far. The head is
    the last state; nothing is selected. Epoch e learns from view e mod V.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.TaskRes().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.72
    """

    grids: ClassVar = {"alpha": (0.5, 1.0), "lr": (2e-4, 2e-3), "epochs": (50, 100, 200)}

    info = MethodInfo(
        key="taskres",
        title="TaskRes",
        paper="Yu et al., Task residual for tuning vision-language models, CVPR 2023",
        closed_form=False,
        views=True,
        rotation_free=False,
    )
    seed: BatchSeed = 0
    alpha: Annotated[NotNegative, "Factor of the residual in the prototype."] = 0.5
    lr: Annotated[NotNegative | None, "Largest learning rate; None is 2e-3, and 2e-4 from 1,000 classes on."] = None
    epochs: Annotated[Count | None, "Passes over the shots; None is 100 up to four shots and 200 above."] = None
    anchor_scale: AnchorScale = None
    logit_scale: LogitScale = None
    warmup_lr: WarmupRate = 1e-5
    weight_decay: WeightDecay = 5e-4
    batch_size: BatchSize = 256

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
            cosine_rates(epochs, lr, self.warmup_lr, per_epoch),
            steps_per_epoch=per_epoch,
            alpha=self.alpha,
            scale=task.logit_scale,
            weight_decay=self.weight_decay,
        )
        residual = last_state(states)
        moved = float(np.sqrt(squared_norms(self.alpha * residual)).mean())
        self._select("fixed", alpha=self.alpha, lr=lr, epochs=epochs, seed=self.seed)
        self._select("support", mean_residual=moved)
        self._set_linear(task.logit_scale * unit_prototypes(base + self.alpha * residual))
