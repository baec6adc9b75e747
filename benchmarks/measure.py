"""Timing two ways of doing the same thing, alternately, so that a noisy machine hurts both."""

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import SMALL

# Of the speed that a head would have if it were matrix products alone.
GOAL = 0.8


def best_seconds(work: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def alternate(ours: Callable[[], Any], baseline: Callable[[], Any], repeats: int = 3) -> tuple[float, Any, Any, float]:
    """How many times faster ours is (fastest against fastest), what each returned, and our seconds.

    Seconds are processor time: both run on one thread, and waiting for a busy machine is nobody's merit.
    """
    fast = slow = float("inf")
    found = expected = None
    for _ in range(repeats):
        start = time.process_time()
        found = ours()
        middle = time.process_time()
        expected = baseline()
        fast, slow = min(fast, middle - start), min(slow, time.process_time() - middle)
    return slow / fast, found, expected, fast


def search_ratio(
    search: Callable[[], Any], one_point: Callable[..., float], grid: Sequence[Any], points: int, repeats: int = 2
) -> tuple[float, list[float]]:
    """How many times faster a search is than computing every point of its grid, and the accuracies of `points` random
    points, on which the slow way is timed."""
    import numpy as np

    ours = best_seconds(search, 1, time.process_time)
    sample = np.random.default_rng(0).choice(len(grid), points, replace=False)
    found: list[float] = []
    taken = best_seconds(lambda: found.extend(one_point(*grid[i]) for i in sample), repeats, time.process_time)
    return taken / points * len(grid) / ours, found


def against_clap(name: str, head: Callable[[], Any], required: float, most_gigabytes: float) -> int:
    """A head with its whole search against our own CLAP on 16 shots of 1,000 classes, and its peak memory.

    CLAP's epochs cost the same, so six of its 300 are timed, in the middle of two fits of the head.
    """
    from benchmarks.data import data
    from kshot.methods.clap import CLAP

    problem = data(1000, 16)
    chance = 1 / len(problem.text)

    def seconds(method: Any) -> float:
        taken = best_seconds(lambda: method.fit(problem.X, problem.y, text=problem.text), 1, time.process_time)
        assert method.score(problem.queries, problem.labels) > 10 * chance, "it learnt nothing"
        return taken

    first, memory = seconds(head()), peak_gigabytes()
    clap = 50 * seconds(CLAP(epochs=6))
    ours = min(first, seconds(head()))
    print(f"{name} {ours:.1f} s, CLAP {clap:.0f} s (from 6 of its 300 epochs)")
    missed = verdict(f"{name} with its whole search, C=1000, K=16, d=512, against CLAP", clap / ours, required)
    print(f"  peak memory {memory:.2f} GB (at most {most_gigabytes:g}), data included")
    return missed + (memory > most_gigabytes)


def torch_on_one_thread() -> Any:
    """torch is no dependency of kshot, only the thing to compare with."""
    try:
        import torch
    except ImportError:
        raise SystemExit("this benchmark compares with torch: pip install torch==2.13.0, then run it again.") from None
    torch.set_num_threads(1)
    return torch


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def verdict(name: str, ratio: float, required: float) -> int:
    """Print one line; return 1 where the requirement is missed. A small size only shows that the work was done."""
    if SMALL:
        print(f"{name}: done, at a small size")
        return 0
    met = ratio >= required
    print(f"{name}: {ratio:.2f}× (required {required}×) {'ok' if met else 'MISSED'}")
    return not met


def of_the_limit(name: str, ratio: float, seconds: float, products: Callable[[], Any]) -> int:
    """Print ours, the official arithmetic and the matrix products alone, which nobody can save; return 1 where ours
    keeps less than GOAL of the speed that is possible."""
    if SMALL:
        print(f"{name}: done, at a small size")
        return 0
    limit = best_seconds(products, clock=time.process_time)
    met = limit >= GOAL * seconds
    print(
        f"{name}: ours {seconds:.2f} s, official {ratio * seconds:.2f} s, the products alone {limit:.2f} s: "
        f"{limit / seconds:.0%} of the limit (goal {GOAL:.0%}) {'ok' if met else 'MISSED'}"
    )
    return not met


def products(rows: Any, weights: Any, steps: int) -> None:
    """The two products of every step of a probe: scores of a batch, and the gradient of the weights."""
    for _ in range(steps):
        scores = rows @ weights.T
        _ = scores.T @ rows


def children_seconds() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
