"""Nearest class mean: the image prototypes alone."""

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale
from kshot.solvers.rows import unit_prototypes
from kshot.types import MethodInfo


class NCM(Classifier):
    """Score by cosine to mu_c; reads no text.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.NCM().fit(data.X, data.y)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    info = MethodInfo(
        key="ncm",
        title="NCM",
        sees=frozenset({"support"}),
        paper="Snell et al., Prototypical networks for few-shot learning, 2017",
    )
    logit_scale: LogitScale = None

    def _fit(self, task: Task) -> None:
        self._set_linear(unit_prototypes(task.means), scale=task.logit_scale)
