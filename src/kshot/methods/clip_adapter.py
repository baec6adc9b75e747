"""CLIP-Adapter: a bottleneck on the image feature at a fixed residual ratio (Gao et al., 2024)."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, every_view
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
from kshot.solvers.training import Update, batches, cosine_rates, momentum_sgd, steps_per_epoch
from kshot.types import Array, MethodInfo


class AdaptedFeature(Classifier):
    """Scores of a fitted adapter: logit_scale·unit(r·A(x) + (1−r)·x)·t_c."""

    _like_data = "text_"
    seed: Annotated[Seed, "Seed of the adapter's random start and of the order of the batches."] = 0
    reduction: Annotated[Count, "The adapter's hidden layer has d/reduction units."] = 4
    logit_scale: LogitScale = None
    epochs: Epochs = 300
    lr: LearningRate = 0.1
    warmup_lr: WarmupRate = 1e-5
    batch_size: BatchSize = 256

    def _train(self, task: Task, ratio: float, rule: Callable[[Adapter], Update]) -> Adapter:
        """An adapter that learnt from all shots at one ratio; `rule` makes its optimiser."""
        X, y = every_view(task)
        images = len(task.y)
        adapter = initial_adapter(X.shape[1], self.reduction, self.seed, X.dtype)
        order = batches(self.seed, len(X), images, self.batch_size)
        rates = cosine_rates(self.epochs, self.lr, self.warmup_lr, steps_per_epoch(images, self.batch_size))
        scale = task.logit_scale
        train_adapter(adapter, X, y, task.text, order, rates, rule(adapter), ratio=ratio, scale=scale)
        return adapter

    def _keep(self, adapter: Adapter, text: Float[Array, "C d"], ratio: float) -> None:
        self.down_, self.up_ = adapter
        self.text_, self.ratio_ = text, ratio

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        adapted = adapt(Adapter(self.down_, self.up_), X)
        return self.logit_scale_ * (blended_feature(adapted, X, self.ratio_)[0] @ self.text_.T)

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        adapted = ((X @ fitted.down_.T).relu() @ fitted.up_.T).relu()
        blend = self.ratio_ * adapted + (1 - self.ratio_) * X
        return self.logit_scale_ * (blend / blend.norm(dim=1, keepdim=True)) @ fitted.text_.T

    def _join_text(self, task: Task) -> None:
        self.text_ = task.text


class CLIPAdapter(AdaptedFeature):
    """f = unit(r·A(x) + (1−r)·x) with A(x) = relu(W2·relu(W1·x)), logits logit_scale·f·t_c (the paper's Sec. 3).

    The ratio r is fixed, as are the widths d → d/4 → d without biases of the official code (commit 08d07f8b); the
    optimiser, schedule and batches are CLAP's, so that the two can be compared.

    The random start lives in the coordinates of the features, so a rotation of all features changes the head.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.CLIPAdapter().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    grids: ClassVar = {"ratio": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)}
    info = MethodInfo(
        key="clip_adapter",
        title="CLIP-Adapter",
        paper="Gao et al., CLIP-Adapter: better vision-language models with feature adapters, IJCV 2024",
        linear=False,
        closed_form=False,
        rotation_free=False,
    )
    ratio: Annotated[Share, "Share of the adapted feature."] = 0.2
    momentum: Momentum = 0.9

    def _fit(self, task: Task) -> None:
        adapter = self._train(task, self.ratio, lambda adapter: momentum_sgd(adapter, self.momentum))
        self._keep(adapter, task.text, self.ratio)
        self._select("fixed", ratio=self.ratio, seed=self.seed)
