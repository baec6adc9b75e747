"""CLIP-Adapter: a bottleneck on the image feature at a fixed residual ratio (Gao et al., 2024)."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.parameters import Count, NotNegative, Positive, Seed, Share
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
    constants=frozenset({"logit_scale"}),
)


class AdaptedFeature(Classifier):
    """Scores of a fitted adapter: logit_scale·unit(r·A(x) + (1−r)·x)·t_c."""

    logit_scale_: float
    down_: Float[Array, "h d"]
    up_: Float[Array, "d h"]
    text_: Float[Array, "C d"]
    ratio_: float

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        adapted = adapt(Adapter(self.down_, self.up_), X)
        return self.logit_scale_ * (blended_feature(adapted, X, self.ratio_)[0] @ self.text_.T)

    def _join_text(self, task: Task) -> None:
        self.text_ = task.text

    def _expects(self) -> tuple[np.dtype, int]:
        return self._fitted_on("text_")


class CLIPAdapter(AdaptedFeature):
    """f = unit(r·A(x) + (1−r)·x) with A(x) = relu(W2·relu(W1·x)), logits logit_scale·f·t_c (the paper's Sec. 3).

    The ratio r is fixed, as are the widths d → d/4 → d without biases of the official code (commit 08d07f8b); the
    optimiser, schedule and batches are CLAP's, so that the two can be compared.

    The random start lives in the coordinates of the features, so a rotation of all features changes the head.

    Parameters
    ----------
    seed : int
        Of the adapter's random start and the order of the batches.
    ratio : float
        Share of the adapted feature, from 0 to 1.
    reduction : int
        The adapter's hidden layer has d/reduction units.
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

    grids: ClassVar = {"ratio": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)}

    def __init__(
        self,
        seed: Seed = 0,
        ratio: Share = 0.2,
        reduction: Count = 4,
        logit_scale: Positive | None = None,
        epochs: Count = 300,
        lr: NotNegative = 0.1,
        warmup_lr: NotNegative = 1e-5,
        momentum: Share = 0.9,
        batch_size: Count = 256,
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
            batches(self.seed, n, n, self.batch_size),
            np.repeat(cosine_rates(self.epochs, self.lr, self.warmup_lr), steps),
            momentum_sgd(adapter, self.momentum),
            ratio=self.ratio,
            scale=task.logit_scale,
        )
        self.down_, self.up_ = adapter
        self.text_, self.ratio_ = task.text, self.ratio
        self.selected_ = {"ratio": Choice(self.ratio, "fixed"), "seed": Choice(self.seed, "fixed")}
