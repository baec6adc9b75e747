"""The Gauss-probe where every class has one shot: three heads that need no second, added up; docs/gauss-probe.md.

Nothing can be left out and there is no covariance, so the weights are fixed. What varies between datasets is how much
text knows: its information about the shots, which it has not learnt from, as a share i of log C.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kshot.methods.evidence import Task, average_view
from kshot.methods.fast_probe import learn_probe
from kshot.methods.taskres import TaskRes
from kshot.solvers.folds import text_prior
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import ScalePrior, rival_spread, text_scale
from kshot.types import Array

# The probe's penalties are CLAP's times 1 + 15·i²: the more text knows, the less a single shot may move it.
PULL = 15.0
# Text that gets every shot right has no best scale: the prior's standard deviation is a factor e.
TEXT_SCALE = ScalePrior(0.0, 1.0)
# Text counts as four shots in the means of the Gaussian head.
TEXT_SHOTS = 4.0
# The Gaussian head's weight against the two others' falls from 1 to an eighth.
LEAST_GAUSSIAN, FALL = 1 / 8, 4


class SingleShots(NamedTuple):
    """A linear head whose softmax is a probability, text's share i of log C, and the probe's penalties."""

    coef: Float[Array, "C d"]
    intercept: Float[Array, " C"]
    text_information: float
    penalties: dict[str, float]


def fit_single_shots(task: Task, iterations: int) -> SingleShots:
    """Add the probe, TaskRes and a spherical Gaussian head, each divided by its spread over the wrong classes.

    The sum has the probe's spread, times the scale that makes text's softmax a probability to the power i.
    """
    X = average_view(task)
    scale, information = text_scale(X @ (task.logit_scale * task.text).T, task.y, TEXT_SCALE)
    share = information / np.log(max(task.n_classes, 2))
    weights, penalties = learn_probe(task, iterations, pull=1 + PULL * share**2)
    no_bias = np.zeros(task.n_classes, X.dtype)
    probe = task.logit_scale * unit_prototypes(weights), no_bias
    residual = TaskRes().fit(task.X, task.y, text=task.text, views=task.views, constants=task.constants)
    heads = probe, (residual.coef_, no_bias), spherical_head(task)
    gaussian = 2 * (LEAST_GAUSSIAN + (1 - LEAST_GAUSSIAN) * (1 - share) ** FALL)
    shares = np.array([1, 1, gaussian]) / (2 + gaussian)
    spreads = [rival_spread(X @ coef.T + intercept, task.y) for coef, intercept in heads]
    factors = (scale**share * spreads[0] * shares / spreads).astype(X.dtype)
    coef = np.sum([f * w for f, (w, _) in zip(factors, heads, strict=True)], axis=0)
    intercept = np.sum([f * b for f, (_, b) in zip(factors, heads, strict=True)], axis=0)
    return SingleShots(coef, intercept, float(share), penalties)


def spherical_head(task: Task) -> tuple[Float[Array, "C d"], Float[Array, " C"]]:
    """x·v_c − m·v_c − ½|v_c|²: the nearest of the means m + v_c, each between the shot and re-centred text."""
    text = task.text - task.text.mean(axis=0)
    prior = text_prior(task.means, text)
    shots = task.counts[:, None]
    means = (shots * task.means + TEXT_SHOTS * prior.means(text)) / (shots + TEXT_SHOTS)
    offsets = (means - prior.centre).astype(text.dtype)
    return offsets, -offsets @ prior.centre - np.einsum("cd,cd->c", offsets, offsets) / 2
