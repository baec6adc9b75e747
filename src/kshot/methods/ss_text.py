"""SS-Text: text prototypes moved by the shots in closed form (Silva-Rodríguez et al., 2025)."""

from kshot.methods.base import Classifier
from kshot.methods.blending import unit_prototypes
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import Positive
from kshot.solvers.text_shift import penalties, pulled_prototypes, repelled
from kshot.types import FREE_EVIDENCE, Choice, MethodInfo

PAPER = "Silva-Rodríguez et al., SS-Text: few-shot, now for real, IPMI 2025 (code jusiro/SS-Text 4ff4897)"


class SSText(Classifier):
    """p_c = t_c + logit_scale·S_c/(N·lambda_c), S_c the sum of the class's shots, scored by cosine.

    lambda_c is 1/N; with `plus` it is one over the class's own count, and the prototypes are then repelled from
    their mean. The repulsion turns a class over where |2·p_c − mean p| is below 2, which happens when classes are
    many and shots few; `selected_["turned_over"]` counts those classes, and a head with any is not to be trusted.
    A class without shots keeps its text. Several views of a shot are averaged into one row.

    Parameters
    ----------
    plus : bool
        SS-Text+: weights by the class's own count, and repulsion.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    def __init__(self, plus: bool = False, logit_scale: Positive | None = None):
        self.plus = plus
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        key, title = ("ss_text_plus", "SS-Text+") if self.plus else ("ss_text", "SS-Text")
        return MethodInfo(key, title, FREE_EVIDENCE, 1, PAPER, views=True, constants=frozenset({"logit_scale"}))

    def _min_shots(self) -> int:
        return 0

    def _fit(self, task: Task) -> None:
        lambdas = penalties(task.y, task.n_classes, own_count=self.plus)
        prototypes = pulled_prototypes(average_view(task), task.y, task.text, lambdas, task.logit_scale)
        if self.plus:
            prototypes, lengths = repelled(prototypes)
            shot = task.counts > 0
            self.selected_ = {
                "penalties": Choice({"min": float(lambdas.min()), "max": float(lambdas[shot].max())}, "support"),
                "smallest_length": Choice(float(lengths.min()), "support"),
                "turned_over": Choice(int((lengths < 2).sum()), "support"),
            }
        else:
            weight = task.logit_scale / (len(task.y) * float(lambdas[0]))
            self.selected_ = {"image_weight": Choice(weight, "support")}
        self._set_linear(task.logit_scale * unit_prototypes(prototypes))
