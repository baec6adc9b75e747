"""RLA: a regularised linear adapter on the image features (Fahes et al., 2024)."""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, view_by_view
from kshot.methods.parameters import AdamEps, Epochs, LearningRate, LogitScale, NotNegative
from kshot.solvers.adapter import mapped, train_linear_adapter
from kshot.solvers.training import half_cosine, last_state
from kshot.types import Array, MethodInfo


class RLA(Classifier):
    """logits = logit_scale·<unit(W·x), t_c>, W trained from the identity with penalty·|W − I|² (no ½).

    300 full-batch epochs of Adam, the last state. The authors report rates from 1e-2 to 1e-5 and choose none; at 1e-3
    and above the run ends at nearly the same W, below it stops short. Epoch e learns from view (e + 1) mod V.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.RLA().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.95
    """

    grids: ClassVar = {"lr": (1e-5, 1e-4, 1e-3, 1e-2), "penalty": ("1/K", "1/K2")}
    _like_data = "text_"
    info = MethodInfo(
        key="rla",
        title="Regularised linear adapter",
        paper="Fahes et al., CLIP's visual embedding projector is a few-shot cornucopia, 2024",
        linear=False,
        closed_form=False,
        views=True,
        rotation_free=False,
    )
    penalty: Annotated[NotNegative | Literal["1/K", "1/K2"], "Weight of |W − I|², K being the mean shots."] = "1/K"
    lr: LearningRate = 1e-3
    epochs: Epochs = 300
    eps: AdamEps = 1e-4
    logit_scale: LogitScale = None

    def _fit(self, task: Task) -> None:
        views, penalty = view_by_view(task), self._penalty(len(task.y) / task.n_classes)
        rates, scale = half_cosine(np.arange(self.epochs), self.epochs, self.lr), task.logit_scale
        W = last_state(
            train_linear_adapter(views, task.y, task.text, rates, penalty=penalty, scale=scale, eps=self.eps)
        )
        self.map_, self.text_ = W, task.text
        moved = float(np.linalg.norm(W - np.eye(len(W), dtype=W.dtype)))
        self._select("fixed", penalty=penalty, lr=self.lr)
        self._select("support", moved=moved)

    def _penalty(self, shots: float) -> float:
        if not isinstance(self.penalty, str):
            return float(self.penalty)
        return {"1/K": 1 / shots, "1/K2": 1 / shots**2}[self.penalty]

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        return self.logit_scale_ * (mapped(X, self.map_)[0] @ self.text_.T)

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        mapped_rows = X @ fitted.map_.T
        return self.logit_scale_ * (mapped_rows / mapped_rows.norm(dim=1, keepdim=True)) @ fitted.text_.T

    def _join_text(self, task: Task) -> None:
        self.text_ = task.text
