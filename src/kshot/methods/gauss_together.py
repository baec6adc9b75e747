"""The Gauss-probe for a batch of pictures that are classified together; docs/gauss-probe.md."""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from kshot.methods.base import log_probabilities
from kshot.methods.evidence import Task, part_of
from kshot.methods.gauss_probe import GaussProbe
from kshot.methods.parameters import AnchorScale, LogitScale, NotNegative
from kshot.methods.transclip import Together, shot_weight
from kshot.solvers.folds import has_siblings, ranks_by_text
from kshot.solvers.stacking import stack
from kshot.solvers.transduction import transduce
from kshot.types import Array, MethodInfo

WEIGHTS = (1.0, 2.0, 4.0, 8.0)
# The batch is used if that makes the hidden shots so many times as likely.
LEAST_GAIN = 8.0


class Chosen(NamedTuple):
    """The Gauss-probe's weight, 0 for the Gauss-probe alone, and the hidden shots' gain in nats."""

    weight: float
    gain: float


class GaussTogether(Together):
    """TransCLIP's updates around the Gauss-probe: z_i ∝ p_i^w · exp(B_i/50), p the Gauss-probe's probabilities.

    A batch helps where its pictures are of all classes, and harms where they are of a few. Half of every class's shots
    tell which: hidden among the queries, without their labels, they choose w in {1, 2, 4, 8} by their likelihood, and
    the batch is used only if they become 8 times as likely as by the Gauss-probe alone. Else, and with one shot per
    class, where none can be hidden, the head is the Gauss-probe. Predictions depend on the other queries.
    """

    info = MethodInfo(
        key="gauss_together",
        title="Gauss-probe, together",
        sees=frozenset({"text", "support", "queries"}),
        paper="kshot, docs/gauss-probe.md",
        linear=False,
        closed_form=False,
        rotation_free=False,
    )
    weight: Annotated[
        NotNegative | None, "Weight of the Gauss-probe's log-probabilities, 0 for nothing else; None: by hidden shots."
    ] = None
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    def _fit(self, task: Task) -> None:
        self._check(task.queries)
        chosen = choose_weight(task) if self.weight is None else None
        if chosen is None:
            self._select("fixed", weight=self.weight)
        else:
            self._select("support", weight=chosen.weight, gain=chosen.gain)
        log_p = alone(task, task.queries)
        weight = self.weight if chosen is None else chosen.weight
        z = together(task, task.queries, log_p, weight) if weight else np.exp(log_p)
        self._remember(task.queries, z)
        moved = z.argmax(axis=1) != log_p.argmax(axis=1)
        self._select("queries", moved=float(np.mean(moved)))


def choose_weight(task: Task) -> Chosen:
    """Hide half of every class's shots among the queries, and compare their likelihoods at their best scale."""
    hidden = hidden_shots(task)
    if not hidden.any():
        return Chosen(0.0, 0.0)
    kept, y = part_of(task, ~hidden), task.y[hidden]
    first, queries = len(task.queries), np.concatenate([task.queries, task.X[hidden]])
    log_p = alone(kept, queries)

    def information(log_z: Float[Array, "Q C"]) -> float:
        return stack(log_z[None, first:], y, 1.0).information

    found = {w: information(log_probabilities(together(kept, queries, log_p, w))) for w in WEIGHTS}
    best = max(found, key=found.__getitem__)
    gain = len(y) * (found[best] - information(log_p))
    return Chosen(best if gain > np.log(LEAST_GAIN) else 0.0, float(gain))


def hidden_shots(task: Task) -> Bool[Array, " N"]:
    """Every other shot of a class that has several, the closest to its text kept."""
    return has_siblings(task.y) & (ranks_by_text(task.X, task.y, task.text) % 2 == 1)


def alone(task: Task, queries: Float[Array, "Q d"]) -> Float[Array, "Q C"]:
    """Log-probabilities by the Gauss-probe, which sees no other query."""
    from scipy.special import log_softmax

    head = GaussProbe().fit(task.X, task.y, text=task.text, classes=range(task.n_classes), constants=task.constants)
    return log_softmax(head.scores(queries), axis=1)


def together(
    task: Task, queries: Float[Array, "Q d"], log_p: Float[Array, "Q C"], weight: float
) -> Float[Array, "Q C"]:
    return transduce(queries, task.X, task.y, log_p, gamma=shot_weight(task), prior_weight=weight).z
