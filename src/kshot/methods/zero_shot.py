"""Zero-shot: the text prototypes themselves (Radford et al., 2021, Sec. 3.1.2)."""

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale
from kshot.types import MethodInfo


class ZeroShot(Classifier):
    """Score by cosine to t_c; looks at no picture.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.ZeroShot().fit(text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.67
    """

    info = MethodInfo(
        key="zero_shot",
        title="Zero-shot",
        sees=frozenset({"text"}),
        min_shots=0,
        paper="Radford et al., Learning transferable visual models from natural language supervision, 2021",
    )
    logit_scale: LogitScale = None

    def _fit(self, task: Task) -> None:
        self._set_linear(task.text, scale=task.logit_scale)
