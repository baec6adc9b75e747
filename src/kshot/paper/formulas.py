"""Numbers of the paper that follow from a formula alone."""

from collections.abc import Callable, Mapping

from kshot.paper.claims import Claim
from kshot.theory.blend_error import dominates_mean
from kshot.theory.sampling import isotropic_standard_error


def _whole(claim: Claim, key: str) -> int:
    return int(claim.conditions[key].values[0])


def _standard_error(claim: Claim) -> float:
    ratio = float(claim.conditions["lambda"].values[0])
    return float(isotropic_standard_error(ratio, _whole(claim, "d"), _whole(claim, "K")))


def _least_dimension(claim: Claim) -> float:
    return float(next(d for d in range(1, 100) if dominates_mean(_whole(claim, "K"), d)))


FORMULAS: Mapping[str, Callable[[Claim], float]] = {
    "(d-2)/d": lambda claim: (_whole(claim, "d") - 2) / _whole(claim, "d"),
    "1/d": lambda claim: 1 / _whole(claim, "d"),
    "isotropic standard error": _standard_error,
    "least dimension of dominance": _least_dimension,
}
