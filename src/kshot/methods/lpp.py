"""LP++: a linear probe blended with text logits by learnt class weights (Huang et al., 2024)."""

from typing import Annotated

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import Count, Epochs, Momentum, NotNegative, Seed
from kshot.solvers.rows import class_sums
from kshot.solvers.text_probe import step_sizes, train_text_probe
from kshot.types import Array, MethodInfo


class LPP(Classifier):
    """logits_c = x·(w_c + alpha_c·t_c) + b_c, step sizes from the data, the state after 300 full-batch epochs.

    The paper's objective is the cross-entropy of x·(w_c + alpha_c·t_c), minimised block by block with step sizes from
    Lipschitz bounds: 4N/lambda_max(XᵀX) for W and N/(4·max_c sum_i (x_i·t_c)²) for alpha. The bias, the momentum and
    the start are those of the official code (commit f81054f9).

    W starts at the class sums, alpha at 250·(mean of x·t_y), b at uniform(±1/sqrt d); the start of b matters at K = 1.
    Alpha moves every tenth epoch by the sum of all its gradients so far, as the official code does. Several views of a
    shot are averaged into one row.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.LPP().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    info = MethodInfo(
        key="lpp",
        title="LP++",
        paper="Huang et al., LP++: a surprisingly strong linear probe for few-shot CLIP, CVPR 2024",
        closed_form=False,
        views=True,
    )
    seed: Annotated[Seed, "Seed of the bias at the start."] = 0
    bias_init: Annotated[list[float] | None, "One bias per class at the start, instead of random ones."] = None
    epochs: Epochs = 300
    momentum: Momentum = 0.9
    alpha_factor: Annotated[NotNegative, "The start of alpha is this times the mean of x·t_y."] = 250.0
    alpha_every: Annotated[Count, "Epochs between two steps of alpha."] = 10

    def _fit(self, task: Task) -> None:
        X = average_view(task)
        lr_w, lr_alpha, alpha_init = step_sizes(X, task.y, task.text, self.alpha_factor)
        W, b, alpha = train_text_probe(
            X,
            task.y,
            task.text,
            class_sums(X, task.y, task.n_classes),
            self._initial_bias(task),
            np.full(task.n_classes, alpha_init, X.dtype),
            lr_w,
            lr_alpha,
            epochs=self.epochs,
            momentum=self.momentum,
            alpha_every=self.alpha_every,
        )
        learnt = {"init": alpha_init, "min": float(alpha.min()), "max": float(alpha.max())}
        self._select("support", lr_w=lr_w, lr_alpha=lr_alpha, alpha=learnt)
        self._select("fixed", bias_init=f"seed {self.seed}" if self.bias_init is None else "given")
        self._set_linear(W + alpha[:, None] * task.text, b)

    def _initial_bias(self, task: Task) -> Float[Array, " C"]:
        if self.bias_init is None:
            bound = 1 / np.sqrt(task.X.shape[1])
            drawn = np.random.default_rng(self.seed).uniform(-bound, bound, task.n_classes)
            return drawn.astype(task.X.dtype)
        given = np.asarray(self.bias_init, task.X.dtype)
        if given.shape != (task.n_classes,):
            raise InputError(f"bias_init needs {task.n_classes} numbers, one per class; got {given.shape}.")
        return given
