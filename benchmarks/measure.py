"""Timing two ways of doing the same thing, and the table that says whether the promise holds."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Claim:
    """A measured figure and the mark it must reach (`at_most`: must stay below)."""

    what: str
    measured: float
    required: float
    unit: str = "×"
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.required if self.at_most else self.measured >= self.required


def seconds(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The fastest of some runs, and what the last one returned."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def ratio(
    what: str, required: float, baseline: Callable[[], Any], ours: Callable[[], Any], repeats: int = 3
) -> tuple[Claim, Any, Any]:
    """How many times faster ours is, with both results; runs alternate so that a busy machine hurts both."""
    slow = fast = float("inf")
    expected = found = None
    for _ in range(repeats):
        taken, found = seconds(ours, 1)
        fast = min(fast, taken)
        taken, expected = seconds(baseline, 1)
        slow = min(slow, taken)
    return Claim(what, slow / fast, required), expected, found


def report(claims: list[Claim]) -> bool:
    """Print the table; True where a claim is missed."""
    for claim in claims:
        sign = "≤" if claim.at_most else "≥"
        verdict = "ok" if claim.met else "MISSED"
        measured, required = f"{claim.measured:.1f}{claim.unit}", f"{sign} {claim.required:g}{claim.unit}"
        print(f"{claim.what:62} {measured:>9} {required:>10}  {verdict}", flush=True)
    return not all(claim.met for claim in claims)


def torch() -> Any:
    """torch on one thread; it is no dependency of kshot, only the thing to compare with."""
    try:
        import torch
    except ImportError:
        raise SystemExit(
            "this benchmark compares with torch: pip install torch==2.13.0, then run it again."
        ) from None
    torch.set_num_threads(1)
    return torch
