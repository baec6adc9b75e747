"""Tip-Adapter-F: Tip-Adapter's cache with trained keys (Zhang et al., 2022)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from kshot.methods.base import info_by_parameters
from kshot.methods.evidence import Task, view_by_view
from kshot.methods.parameters import AdamEps, BatchSeed, BatchSize, Count, LearningRate, NotNegative, WeightDecay
from kshot.methods.tip_adapter import INFO as TRAINING_FREE
from kshot.methods.tip_adapter import CacheHead
from kshot.solvers.cache import search_hits, train_keys
from kshot.solvers.training import batches, half_cosine, last_state, steps_per_epoch
from kshot.types import FREE_EVIDENCE, Array, MethodInfo

INFO = replace(TRAINING_FREE, key="tip_adapter_f", title="Tip-Adapter-F", closed_form=False, rotation_free=False)
OFFICIAL_INFO = replace(
    INFO,
    key="tip_adapter_f_test",
    title="Tip-Adapter-F (test-tuned)",
    sees=frozenset({*FREE_EVIDENCE, "validation", "test"}),
    constants=frozenset({*INFO.constants, "alpha", "epochs"}),
)


class TipAdapterF(CacheHead):
    """Keys that start at the shots and learn by AdamW on the shots' cross-entropy; text and labels are frozen.

    The head is the last epoch's, with (alpha, beta) as in training. `tune="test"` is the official protocol, which
    looks at the test labels three times: the epoch with the best test accuracy is kept, then (beta, alpha) come
    from Tip-Adapter's grid on the validation split, and what is reported is the better of the two on the test set. In a
    study it is trained with the alpha and for the epochs that the official code has for the dataset.
    Keys start at the average of a shot's views; epoch e learns from view e mod V.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.TipAdapterF().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.68
    """

    grids: ClassVar = {
        "alpha": (0.5, 1.17, 2.0, 3.0, 5.0, 10.0),
        "beta": (0.5, 1.0, 2.0, 5.0, 10.0),
        "lr": (1e-4, 1e-3, 1e-2),
        "epochs": (5, 20, 100),
    }

    tune: Annotated[
        Literal["none", "test"], "Whether epoch, alpha and beta are chosen with test labels, as officially."
    ] = "none"
    seed: BatchSeed = 0
    alpha: Annotated[
        NotNegative | None, 'Weight of the cache in training; None is the dataset\'s for `tune="test"`, else 1.17.'
    ] = None
    beta: Annotated[NotNegative, "Sharpness of the affinities in training."] = 1.0
    lr: LearningRate = 1e-3
    epochs: Annotated[Count | None, 'Passes over the shots; None is the dataset\'s for `tune="test"`, else 20.'] = None
    batch_size: BatchSize = 256
    weight_decay: WeightDecay = 0.01
    eps: AdamEps = 1e-4

    @info_by_parameters
    def info(self) -> MethodInfo:
        return OFFICIAL_INFO if self.tune == "test" else INFO

    def _fit(self, task: Task) -> None:
        self._lay_out(task, float(self.beta), float(self._set_or_known("alpha", task, 1.17)))
        start, epochs = self.keys_, int(self._set_or_known("epochs", task, 20))
        if self.tune == "test":
            self._fit_officially(task, start, epochs)
            return
        self.keys_ = last_state(self._epochs(task, start, epochs))
        self._select("fixed", alpha=self.alpha_, beta=self.beta, lr=self.lr, epochs=epochs, seed=self.seed)

    def _fit_officially(self, task: Task, start: Float[Array, "K C d"], epochs: int) -> None:
        accuracies = []
        for keys in self._epochs(task, start, epochs):
            accuracies.append(self._accuracy(task.test, keys, self.beta_, self.alpha_))
            if accuracies[-1] > max(accuracies[:-1], default=-1):
                self.keys_ = keys.copy()
        text = task.logit_scale * task.text
        hits = search_hits(*task.validation, text, self.keys_, self.filled_, *self._grids(task))
        at = np.unravel_index(int(hits.argmax()), hits.shape)
        beta, alpha = (float(grid[i]) for grid, i in zip(self._grids(task), at, strict=True))
        searched = self._accuracy(task.test, self.keys_, beta, alpha)
        better = searched > max(accuracies)
        if better:
            self.beta_, self.alpha_ = beta, alpha
        self._select("validation", alpha=alpha, beta=beta)
        self._select("test", epoch=int(np.argmax(accuracies)), accuracy_per_epoch=accuracies)
        self._select("test", accuracy_after_search=searched, reported="search" if better else "epoch")
        self._select("fixed", seed=self.seed)

    def _epochs(self, task: Task, start: Float[Array, "K C d"], epochs: int) -> Iterator[Float[Array, "K C d"]]:
        """The keys after every epoch."""
        n = len(task.y)
        per_epoch = steps_per_epoch(n, self.batch_size, keep_short=True)
        total = epochs * per_epoch
        states = train_keys(
            start,
            self.filled_,
            view_by_view(task),
            task.y,
            task.text,
            batches(self.seed, n, n, self.batch_size, keep_short=True),
            half_cosine(np.arange(total), total, self.lr),
            steps_per_epoch=per_epoch,
            alpha=self.alpha_,
            beta=self.beta,
            scale=task.logit_scale,
            eps=self.eps,
            weight_decay=self.weight_decay,
        )
        for step, keys in enumerate(states, 1):
            if step % per_epoch == 0:
                yield keys
