"""Timing two ways of doing the same thing, alternately, so that a noisy machine hurts both."""

import resource
import time
from collections.abc import Callable
from typing import Any


def best_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def verdict(name: str, ratio: float, required: float) -> int:
    """Print one line; return 1 where the requirement is missed."""
    met = ratio >= required
    print(f"{name}: {ratio:.1f}× (required {required}×) {'ok' if met else 'MISSED'}")
    return not met
