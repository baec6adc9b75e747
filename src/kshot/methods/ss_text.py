"""SS-Text: text prototypes moved by the shots in closed form (Silva-Rodríguez et al., 2025)."""

from dataclasses import replace
from typing import Annotated

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, average_view
from kshot.methods.parameters import LogitScale
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.text_probe import penalties, pulled_prototypes, repelled
from kshot.types import MethodInfo

INFO = MethodInfo(
    key="ss_text",
    title="SS-Text",
    paper="Silva-Rodríguez et al., SS-Text: few-shot, now for real, IPMI 2025 (code jusiro/SS-Text 4ff4897)",
    views=True,
)


class SSText(Classifier):
    """p_c = t_c + logit_scale·S_c/(N·lambda_c), S_c the sum of the class's shots, scored by cosine.

    lambda_c is 1/N; with `plus` it is one over the class's own count, and the prototypes are then repelled from
    their mean. The repulsion turns a class over where |2·p_c − mean p| is below 2, which happens when classes are
    many and shots few; `selected_["turned_over"]` counts those classes, and a head with any is not to be trusted.
    A class without shots keeps its text. Several views of a shot are averaged into one row.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.SSText().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    plus: Annotated[bool, "SS-Text+: weights by the class's own count, and repulsion."] = False
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return replace(INFO, key="ss_text_plus", title="SS-Text+") if self.plus else INFO

    def _min_shots(self) -> int:
        return 0

    def _fit(self, task: Task) -> None:
        lambdas = penalties(task.y, task.n_classes, own_count=self.plus)
        prototypes = pulled_prototypes(average_view(task), task.y, task.text, lambdas, task.logit_scale)
        if self.plus:
            prototypes, lengths = repelled(prototypes)
            ends = {"min": float(lambdas.min()), "max": float(lambdas[task.counts > 0].max())}
            turned_over = int((lengths < 2).sum())
            self._select("support", penalties=ends, smallest_length=float(lengths.min()), turned_over=turned_over)
        else:
            self._select("support", image_weight=task.logit_scale / (len(task.y) * float(lambdas[0])))
        self._set_linear(task.logit_scale * unit_prototypes(prototypes))
