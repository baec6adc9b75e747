"""Cross-modal linear probe: texts are training samples beside the pictures (Lin et al., 2023)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, every_view
from kshot.methods.parameters import BatchSeed, Count, LearningRate, Positive, Share, WeightDecay
from kshot.solvers.cross_modal import half_sizes, paired_batches, train_cross_modal, warm_cosine
from kshot.solvers.rows import accuracy
from kshot.solvers.training import last_state
from kshot.types import Array, Labelled, MethodInfo

INFO = MethodInfo(
    key="cross_modal_lp",
    title="Cross-modal linear probe",
    paper="Lin et al., Multimodality helps unimodality: cross-modal few-shot learning, CVPR 2023",
    closed_form=False,
    views=True,
    rotation_free=False,
)
LOG_SCALE = 4.60517
TEXT_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


class CrossModalLP(Classifier):
    """Softmax regression without bias from the text prototypes; each batch is half pictures, half texts.

    AdamW, 12,800 iterations, the last state: without a validation split there is no early stopping, and the lower
    rate with decay and the larger batch is the corner of the official grid that drifts least from the text.
    `batch_size=None` is 32, and 8 where either half would not be smaller than its data. The head's weights are
    (1 − text_share)·W + text_share·t: `text_share=0.5` is the WiSE-FT variant that the authors report beside it.
    Views are rows of their own. Where no logit scale is known it is the official one, exp(4.60517) in the working
    precision: over 12,800 steps even its rounding shows.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.CrossModalLP(iterations=200).fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.82
    """

    grids: ClassVar = {"lr": (1e-4, 1e-3), "weight_decay": (0.0, 1e-4, 0.01), "batch_size": (8, 32)}

    text_share: Annotated[Share, "Share of the text in the final weights."] = 0.0
    seed: BatchSeed = 0
    lr: LearningRate = 1e-4
    weight_decay: WeightDecay = 0.01
    batch_size: Annotated[Count | None, "Rows of a step; None is the official number, 32 or 8."] = None
    iterations: Annotated[Count, "Steps of the optimiser."] = 12_800
    logit_scale: Annotated[
        Positive | None, "Factor that makes logits of cosines; None is the encoder's, exp(4.60517) where none is known."
    ] = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return replace(INFO, key=f"{INFO.key}_wiseft", title=f"{INFO.title} (WiSE-FT)") if self.text_share else INFO

    def _fit(self, task: Task) -> None:
        W, scale = self._train(task)
        X, _ = every_view(task)
        batch_size = sum(half_sizes(len(X), task.n_classes, self.batch_size))
        self._select("fixed", lr=self.lr, weight_decay=self.weight_decay, batch_size=batch_size)
        self._select("fixed", text_share=self.text_share, seed=self.seed)
        self._select("assumed", logit_scale=scale)
        self._set_linear(_mixed(W, task.text, self.text_share, scale))

    def _train(self, task: Task) -> tuple[Float[Array, "C d"], float]:
        """The weights after the last step, and the logit scale of the training."""
        X, y = every_view(task)
        rounded = X.dtype.type(np.exp(np.float64(X.dtype.type(LOG_SCALE))))
        scale = task.constants.get("logit_scale", float(rounded))
        sizes = half_sizes(len(X), task.n_classes, self.batch_size)
        order, rates = paired_batches(self.seed, len(X), task.n_classes, sizes), warm_cosine(self.iterations, self.lr)
        states = train_cross_modal(X, y, task.text, order, rates, scale=scale, weight_decay=self.weight_decay)
        return last_state(states), scale

    def knob_name(self) -> str:
        return "text_share"

    def knob_grid(self) -> Sequence[float]:
        return TEXT_SHARES

    def knob_at(self, value: float) -> "CrossModalLP":
        return self.with_params(text_share=value)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return np.array([accuracy(scores, queries.y) for scores in self.knob_scores(task, queries.X)])

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        """One training serves every share."""
        W, scale = self._train(task)
        for share in TEXT_SHARES:
            yield X @ _mixed(W, task.text, share, scale).T


def _mixed(W: Float[Array, "C d"], text: Float[Array, "C d"], share: float, scale: float) -> Float[Array, "C d"]:
    return scale * ((1 - share) * W + share * text)
