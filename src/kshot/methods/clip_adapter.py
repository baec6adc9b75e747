"""CLIP-Adapter: a bottleneck on the image feature at a fixed residual ratio (Gao et al., 2024)."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.solvers.adapter import Adapter, adapt, blended_feature, initial_adapter, train_adapter
from kshot.solvers.optimisers import momentum_sgd
from kshot.solvers.schedule import batches, cosine_rates, steps_per_epoch
from kshot.types import Array, Choice, MethodInfo

INFO = MethodInfo(
    key="clip_adapter",
    title="CLIP-Adapter",
    sees=frozenset({"text", "support"}),
    min_shots=1,
    paper="Gao et al., CLIP-Adapter: better vision-language models with feature adapters, IJCV 2024",
    linear=False,
    closed_form=False,
    rotation_free=False,
)


class AdaptedFeature(Classifier):
    """Scores of a fitted adapter: logit_scale·unit(r·A(x) + (1−r)·x)·t_c."""

    logit_scale: float
    down_: Float[Array, "h d"]
    up_: Float[Array, "d h"]
    text_: Float[Array, "C d"]
    ratio_: float

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        adapted = adapt(Adapter(self.down_, self.up_), X)
        return self.logit_scale * (blended_feature(adapted, X, self.ratio_)[0] @ self.text_.T)

    def _expects(self) -> tuple[np.dtype, int]:
        return self._fitted_on("text_")


class CLIPAdapter(AdaptedFeature):
    """The adapter trained at a fixed ratio with CLAP's optimiser, schedule and batches.

    The random start lives in the coordinates of the features, so a rotation of all features changes the head.
    """

    grids: ClassVar = {"ratio": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)}

    def __init__(
        self,
        seed: int = 0,
        ratio: float = 0.2,
        reduction: int = 4,
        logit_scale: float = 100.0,
        epochs: int = 300,
        lr: float = 0.1,
        warmup_lr: float = 1e-5,
        momentum: float = 0.9,
        batch_size: int = 256,
    ):
        self.seed = seed
        self.ratio = ratio
        self.reduction = reduction
        self.logit_scale = logit_scale
        self.epochs = epochs
        self.lr = lr
        self.warmup_lr = warmup_lr
        self.momentum = momentum
        self.batch_size = batch_size

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        n, d = task.X.shape
        adapter = initial_adapter(d, self.reduction, self.seed, task.X.dtype)
        steps = steps_per_epoch(n, self.batch_size)
        train_adapter(
            adapter,
            task.X,
            task.y,
            task.text,
            batches([self.seed], n, n, self.batch_size),
            np.repeat(cosine_rates(self.epochs, self.lr, self.warmup_lr), steps),
            momentum_sgd(adapter, self.momentum),
            ratio=self.ratio,
            scale=self.logit_scale,
        )
        self.down_, self.up_ = adapter
        self.text_, self.ratio_ = task.text, self.ratio
        self.selected_ = {"ratio": Choice(self.ratio, "fixed"), "seed": Choice(self.seed, "fixed")}
