"""Tip-Adapter-F: Tip-Adapter's cache with trained keys (Zhang et al., 2022)."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from kshot.methods.evidence import Task, average_view, view_by_view
from kshot.methods.parameters import Count, NotNegative, Positive, Seed, check_parameters
from kshot.methods.tip_adapter import PAPER, CacheHead
from kshot.solvers.cache import lay_out, search_hits
from kshot.solvers.key_training import train_keys
from kshot.solvers.schedule import batches, half_cosine, last_state, steps_per_epoch
from kshot.types import FREE_EVIDENCE, Array, Choice, Evidence, MethodInfo


class TipAdapterF(CacheHead):
    """The shots start as keys and learn by AdamW on the shots' own cross-entropy; text and labels are frozen.

    The head is the last epoch's, with (alpha, beta) as in training. `tune="test"` is the official protocol, which
    looks at the test labels three times: the epoch with the best test accuracy is kept, then (beta, alpha) come
    from Tip-Adapter's grid on the validation split, and what is reported is the better of the two on the test set. In a
    study it is trained with the alpha and for the epochs that the official code has for the dataset.
    Keys start at the average of a shot's views; epoch e learns from view e mod V.

    Parameters
    ----------
    tune : "none" or "test"
        Whether epoch, alpha and beta are chosen, as officially, with test labels.
    seed : int
        Of the order of the batches.
    alpha : float or None
        Weight of the cache while the keys learn; None is the dataset's for `tune="test"`, else 1.17.
    beta : float
        Sharpness of the affinities while the keys learn.
    lr : float
        Largest learning rate.
    epochs : int or None
        Passes over the shots; None is the dataset's for `tune="test"`, else 20.
    batch_size : int
        Rows of a step.
    weight_decay : float
        Of the optimiser.
    eps : float
        Added to Adam's denominator.
    beta_scale : float or None
        Largest beta of the search; None is the dataset's for `tune="test"`, else 12.
    alpha_scale : float or None
        Largest alpha of the search; None is the dataset's for `tune="test"`, else 10.
    beta_points : int
        Betas of the search.
    alpha_points : int
        Alphas of the search.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.

    Attributes
    ----------
    keys_ : (K, C, d)
        The learnt keys, laid out by class.
    """

    grids: ClassVar = {
        "alpha": (0.5, 1.17, 2.0, 3.0, 5.0, 10.0),
        "beta": (0.5, 1.0, 2.0, 5.0, 10.0),
        "lr": (1e-4, 1e-3, 1e-2),
        "epochs": (5, 20, 100),
    }

    def __init__(
        self,
        tune: Literal["none", "test"] = "none",
        seed: Seed = 0,
        alpha: NotNegative | None = None,
        beta: NotNegative = 1.0,
        lr: NotNegative = 1e-3,
        epochs: Count | None = None,
        batch_size: Count = 256,
        weight_decay: NotNegative = 0.01,
        eps: Positive = 1e-4,
        beta_scale: Positive | None = None,
        alpha_scale: Positive | None = None,
        beta_points: Count = 200,
        alpha_points: Count = 20,
        logit_scale: Positive | None = None,
    ):
        self.tune = tune
        self.seed = seed
        self.alpha = alpha
        self.beta = beta
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.eps = eps
        self.beta_scale = beta_scale
        self.alpha_scale = alpha_scale
        self.beta_points = beta_points
        self.alpha_points = alpha_points
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        key, title = "tip_adapter_f", "Tip-Adapter-F"
        sees: frozenset[Evidence] = FREE_EVIDENCE
        constants = {"logit_scale", "beta_scale", "alpha_scale"}
        if self.tune == "test":
            constants |= {"alpha", "epochs"}
            key, title = f"{key}_test", f"{title} (test-tuned)"
            sees = frozenset({"text", "support", "validation", "test"})
        check_parameters(self)
        return MethodInfo(
            key,
            title,
            sees,
            1,
            PAPER,
            linear=False,
            closed_form=False,
            views=True,
            rotation_free=False,
            constants=frozenset(constants),
        )

    def _fit(self, task: Task) -> None:
        start, self.filled_, _ = lay_out(average_view(task), task.y, task.n_classes)
        self.text_, self.alpha_, self.beta_ = task.text, self._alpha(task), float(self.beta)
        if self.tune == "test":
            self._fit_officially(task, start)
            return
        self.keys_ = last_state(self._epochs(task, start))
        fixed = {
            "alpha": self.alpha_,
            "beta": self.beta,
            "lr": self.lr,
            "epochs": self._n_epochs(task),
            "seed": self.seed,
        }
        self.selected_ = {name: Choice(value, "fixed") for name, value in fixed.items()}

    def _alpha(self, task: Task) -> float:
        return float(self._set_or_known("alpha", task, 1.17))

    def _n_epochs(self, task: Task) -> int:
        return int(self._set_or_known("epochs", task, 20))

    def _fit_officially(self, task: Task, start: Float[Array, "K C d"]) -> None:
        assert task.validation is not None
        assert task.test is not None
        accuracies = []
        for keys in self._epochs(task, start):
            accuracies.append(self._accuracy(task.test, keys, self.beta_, self.alpha_))
            if accuracies[-1] > max(accuracies[:-1], default=-1):
                self.keys_ = keys.copy()
        text = task.logit_scale * task.text
        hits = search_hits(*task.validation, text, self.keys_, self.filled_, *self._grids(task))
        at = np.unravel_index(int(hits.argmax()), hits.shape)
        beta, alpha = (float(grid[i]) for grid, i in zip(self._grids(task), at, strict=True))
        searched = self._accuracy(task.test, self.keys_, beta, alpha)
        if searched > max(accuracies):
            self.beta_, self.alpha_ = beta, alpha
        self.selected_ = {
            "alpha": Choice(alpha, "validation"),
            "beta": Choice(beta, "validation"),
            "epoch": Choice(int(np.argmax(accuracies)), "test"),
            "accuracy_per_epoch": Choice(accuracies, "test"),
            "accuracy_after_search": Choice(searched, "test"),
            "reported": Choice("search" if searched > max(accuracies) else "epoch", "test"),
            "seed": Choice(self.seed, "fixed"),
        }

    def _epochs(self, task: Task, start: Float[Array, "K C d"]) -> Iterator[Float[Array, "K C d"]]:
        """The keys after every epoch."""
        n = len(task.y)
        per_epoch = steps_per_epoch(n, self.batch_size, keep_short=True)
        total = self._n_epochs(task) * per_epoch
        states = train_keys(
            start,
            self.filled_,
            view_by_view(task),
            task.y,
            task.text,
            batches(self.seed, n, n, self.batch_size, keep_short=True),
            half_cosine(np.arange(total), total, self.lr),
            steps_per_epoch=per_epoch,
            alpha=self._alpha(task),
            beta=self.beta,
            scale=task.logit_scale,
            eps=self.eps,
            weight_decay=self.weight_decay,
        )
        for step, keys in enumerate(states, 1):
            if step % per_epoch == 0:
                yield keys
