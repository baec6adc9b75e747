"""The fast probe: the optimum that CLAP's training is on its way to, reached in a few quasi-Newton steps."""

from typing import NamedTuple

from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.clap import penalty_summary
from kshot.methods.evidence import Task, every_view
from kshot.methods.parameters import Count, Positive
from kshot.solvers.cosine_optimum import fit_cosine_probe
from kshot.solvers.cosine_probe import anchor_confidence
from kshot.solvers.rows import unit_prototypes
from kshot.types import ENCODER_CONSTANTS, FREE_EVIDENCE, Array, Choice, MethodInfo

INFO = MethodInfo(
    key="fast_probe",
    title="Fast probe",
    sees=FREE_EVIDENCE,
    min_shots=1,
    paper="kshot, docs/gauss-probe.md",
    closed_form=False,
    views=True,
    constants=ENCODER_CONSTANTS,
)


class FastProbe(Classifier):
    """Cosine softmax held near the text anchors: CLAP's objective, minimised.

    The anchors, the penalties and the loss are CLAP's. Instead of 300 epochs of momentum SGD, whose state depends
    on the order of the batches, `iterations` of L-BFGS on all shots at once, from the anchors: no seed and a
    tenth of the work. Every view is a row of its own.

    Parameters
    ----------
    iterations : int
        Steps of L-BFGS.
    anchor_scale : float or None
        Norm of the text embedding before it was normalised; None is the encoder's, 10 where none is known.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    def __init__(
        self, iterations: Count = 20, anchor_scale: Positive | None = None, logit_scale: Positive | None = None
    ):
        self.iterations = iterations
        self.anchor_scale = anchor_scale
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        learnt = learn_probe(task, self.iterations)
        self.selected_ = learnt.selected
        self._set_linear(task.logit_scale * unit_prototypes(learnt.weights))


class LearntProbe(NamedTuple):
    """Weights of any length, and what a record keeps."""

    weights: Float[Array, "C d"]
    selected: dict[str, Choice]


def learn_probe(
    task: Task, iterations: int, start: Float[Array, "C d"] | None = None, pull: float = 1.0
) -> LearntProbe:
    """From the anchors unless another start is given; `pull` multiplies CLAP's penalties."""
    X, y = every_view(task)
    penalties = pull * anchor_confidence(X, y, task.text, task.logit_scale)
    weights = fit_cosine_probe(
        X, y, task.anchor_scale * task.text, penalties, scale=task.logit_scale, iterations=iterations, start=start
    )
    return LearntProbe(weights, {"penalties": Choice(penalty_summary(penalties), "support")})
