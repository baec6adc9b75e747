"""CLIP-Adapter: a bottleneck on the image feature at a fixed residual ratio (Gao et al., 2024)."""

from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.parameters import (
    BatchSize,
    Count,
    Epochs,
    LearningRate,
    LogitScale,
    Momentum,
    Seed,
    Share,
    WarmupRate,
)
from kshot.solvers.adapter import Adapter, adapt, blended_feature, initial_adapter, train_adapter
from kshot.solvers.training import batches, cosine_rates, momentum_sgd, steps_per_epoch
from kshot.types import FREE_EVIDENCE, Array, Choice, MethodInfo

AdapterSeed: TypeAlias = Annotated[Seed, "Seed of the adapter's random start and of the order of the batches."]
Reduction: TypeAlias = Annotated[Count, "The adapter's hidden layer has d/reduction units."]


class AdaptedFeature(Classifier):
    """Scores of a fitted adapter: logit_scale·unit(r·A(x) + (1−r)·x)·t_c."""

    _like_data = "text_"

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        adapted = adapt(Adapter(self.down_, self.up_), X)
        return self.logit_scale_ * (blended_feature(adapted, X, self.ratio_)[0] @ self.text_.T)

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        adapted = ((X @ fitted.down_.T).relu() @ fitted.up_.T).relu()
        blend = self.ratio_ * adapted + (1 - self.ratio_) * X
        return self.logit_scale_ * (blend / blend.norm(dim=1, keepdim=True)) @ fitted.text_.T

    def _keep(self, adapter: Adapter, text: Float[Array, "C d"], ratio: float) -> None:
        self.down_, self.up_ = adapter
        self.text_, self.ratio_ = text, ratio

    def _join_text(self, task: Task) -> None:
        self.text_ = task.text


class CLIPAdapter(AdaptedFeature):
    """f = unit(r·A(x) + (1−r)·x) with A(x) = relu(W2·relu(W1·x)), logits logit_scale·f·t_c (the paper's Sec. 3).

    The ratio r is fixed, as are the widths d → d/4 → d without biases of the official code (commit 08d07f8b); the
    optimiser, schedule and batches are CLAP's, so that the two can be compared.

    The random start lives in the coordinates of the features, so a rotation of all features changes the head.
    """

    grids: ClassVar = {"ratio": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)}
    info = MethodInfo(
        key="clip_adapter",
        title="CLIP-Adapter",
        sees=FREE_EVIDENCE,
        min_shots=1,
        paper="Gao et al., CLIP-Adapter: better vision-language models with feature adapters, IJCV 2024",
        linear=False,
        closed_form=False,
        rotation_free=False,
        constants=frozenset({"logit_scale"}),
    )
    seed: AdapterSeed = 0
    ratio: Annotated[Share, "Share of the adapted feature."] = 0.2
    reduction: Reduction = 4
    logit_scale: LogitScale = None
    epochs: Epochs = 300
    lr: LearningRate = 0.1
    warmup_lr: WarmupRate = 1e-5
    momentum: Momentum = 0.9
    batch_size: BatchSize = 256

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
        self._keep(adapter, task.text, self.ratio)
        self.selected_ = {"ratio": Choice(self.ratio, "fixed"), "seed": Choice(self.seed, "fixed")}
