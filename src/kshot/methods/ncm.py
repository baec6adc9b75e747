"""Nearest class mean: the image prototypes alone."""

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.solvers.rows import unit_prototypes
from kshot.types import MethodInfo

INFO = MethodInfo(
    key="ncm",
    title="NCM",
    sees=frozenset({"support"}),
    min_shots=1,
    paper="Snell et al., Prototypical networks for few-shot learning, 2017",
)


class NCM(Classifier):
    """Score by cosine to mu_c; reads no text."""

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        self._set_linear(unit_prototypes(task.means))
