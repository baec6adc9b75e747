"""Nearest class mean: the image prototypes alone."""

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive
from kshot.solvers.rows import unit_prototypes
from kshot.types import MethodInfo

INFO = MethodInfo(
    key="ncm",
    title="NCM",
    sees=frozenset({"support"}),
    min_shots=1,
    paper="Snell et al., Prototypical networks for few-shot learning, 2017",
    constants=frozenset({"logit_scale"}),
)


class NCM(Classifier):
    """Score by cosine to mu_c; reads no text.

    Parameters
    ----------
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    def __init__(self, logit_scale: Positive | None = None):
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        self._set_linear(unit_prototypes(task.means), scale=task.logit_scale)
