"""Which method to use with so many shots, and why: the study's advice, in one place."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int

from kshot.errors import InputError
from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.types import Array

AUTO = "auto"
# From four shots on fold-GDA passes both probes on the bundled sets and on CLIP features (docs/fold-gda.md).
ENOUGH_FOR_FOLDS = 4


@dataclass(frozen=True, slots=True)
class Advice:
    """A registered method, its parameters and the reason for it."""

    method: str
    params: dict[str, Any]
    reason: str

    @property
    def make(self) -> Callable[[], Classifier]:
        return partial(registry.create, self.method, **self.params)


def advise(
    counts: Int[Array, " C"], logit_scale: float | None, text_norm: float, wanted: str = AUTO
) -> Advice:
    """By the middle class's shots; `wanted` names a method instead, which must need no more than the shots."""
    shots = int(np.median(counts))
    if wanted == AUTO:
        method, reason = _by_shots(shots)
    else:
        method, reason = wanted, "asked for"
    params = scales(method, logit_scale, text_norm)
    info = registry.create(method, **params).info
    if info.reference_point:
        raise InputError(
            f"{method} looks at data that you do not have ({', '.join(sorted(info.sees))}). Leave --method out."
        )
    return Advice(method, params, reason)


def scales(method: str, logit_scale: float | None, text_norm: float) -> dict[str, Any]:
    """The encoder's own constants, for the methods that use them."""
    given = {"logit_scale": logit_scale, "anchor_scale": text_norm}
    takes = registry.create(method).info.constants
    return {name: value for name, value in given.items() if name in takes and value is not None}


def _by_shots(shots: int) -> tuple[str, str]:
    if shots < 2:
        return (
            "clap",
            "with one picture per class CLAP stays nearest to the text; zero-shot is the other choice",
        )
    if shots < ENOUGH_FOR_FOLDS:
        return (
            "clap",
            f"with about {shots} pictures per class CLAP is the strongest head that needs no validation",
        )
    return (
        "fold_gda",
        f"with about {shots} pictures per class fold-GDA is above CLAP and LP++ on real pictures, without validation",
    )
