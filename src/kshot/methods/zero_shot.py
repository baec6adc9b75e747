"""Zero-shot: the text prototypes themselves (Radford et al., 2021, Sec. 3.1.2)."""

from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive
from kshot.types import MethodInfo

INFO = MethodInfo(
    key="zero_shot",
    title="Zero-shot",
    sees=frozenset({"text"}),
    min_shots=0,
    paper="Radford et al., Learning transferable visual models from natural language supervision, 2021",
    constants=frozenset({"logit_scale"}),
)


class ZeroShot(Classifier):
    """Score by cosine to t_c; looks at no picture.

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
        self._set_linear(task.text, scale=task.logit_scale)
