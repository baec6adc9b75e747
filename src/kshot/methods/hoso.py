"""HOSO: CLIP-Adapter with its ratio learnt on one held-out shot per class (Vorster et al., 2026)."""

import numpy as np

from kshot.methods.clip_adapter import AdaptedFeature
from kshot.methods.task import Task
from kshot.solvers.adapter import adapt, initial_adapter, ratio_losses, train_adapter
from kshot.solvers.optimisers import adamw
from kshot.solvers.schedule import batches, cosine_rates, steps_per_epoch
from kshot.types import Choice, MethodInfo

INFO = MethodInfo(
    key="hoso",
    title="HOSO",
    sees=frozenset({"text", "support"}),
    min_shots=2,
    paper="Vorster et al., hold-one-shot-out: validation-free few-shot CLIP adapters, 2026",
    linear=False,
    closed_form=False,
    views=True,
    rotation_free=False,
)
RATIOS = np.linspace(0.0, 1.0, 101)


class HOSO(AdaptedFeature):
    """One shot per class, the first, is held out; the adapter learns on the rest, the ratio on the held-out.

    No official code is public, so these choices are ours.
    """

    def __init__(
        self,
        seed: int = 0,
        train_ratio: float = 0.2,
        reduction: int = 4,
        logit_scale: float = 100.0,
        epochs: int = 300,
        lr: float = 1e-3,
        warmup_lr: float = 1e-5,
        weight_decay: float = 0.01,
        batch_size: int = 256,
    ):
        self.seed = seed
        self.train_ratio = train_ratio
        self.reduction = reduction
        self.logit_scale = logit_scale
        self.epochs = epochs
        self.lr = lr
        self.warmup_lr = warmup_lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        views = task.X[None] if task.views is None else task.views
        held = np.zeros(len(task.y), bool)
        held[np.unique(task.y, return_index=True)[1]] = True
        learn, judge = (
            views[:, ~held].reshape(-1, task.X.shape[1]),
            views[:, held].reshape(-1, task.X.shape[1]),
        )
        adapter = initial_adapter(task.X.shape[1], self.reduction, self.seed, task.X.dtype)
        images = int(np.count_nonzero(~held))
        train_adapter(
            adapter,
            learn,
            np.tile(task.y[~held], len(views)),
            task.text,
            batches([self.seed], len(learn), images, self.batch_size),
            np.repeat(
                cosine_rates(self.epochs, self.lr, self.warmup_lr), steps_per_epoch(images, self.batch_size)
            ),
            adamw(adapter, weight_decay=self.weight_decay),
            ratio=self.train_ratio,
            scale=self.logit_scale,
        )
        labels = np.tile(task.y[held], len(views))
        losses = ratio_losses(adapt(adapter, judge), judge, labels, task.text, RATIOS, self.logit_scale)
        self.down_, self.up_ = adapter
        self.text_, self.ratio_ = task.text, float(RATIOS[losses.argmin()])
        self.selected_ = {
            "ratio": Choice(self.ratio_, "support"),
            "held_out_loss": Choice(losses.tolist(), "support"),
            "seed": Choice(self.seed, "fixed"),
        }
