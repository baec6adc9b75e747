"""The search that follows Tip-Adapter-F's training, on its trained keys, against recomputing every point."""

import numpy as np

from benchmarks.data import data
from benchmarks.measure import best_seconds, verdict
from benchmarks.tip_adapter import one_point
from kshot.methods.tip_adapter_f import TipAdapterF
from kshot.solvers.cache import search_grid, search_hits

SAMPLED_POINTS = 12


def main() -> int:
    problem = data(100, 16)
    head = TipAdapterF(epochs=1).fit(problem.X, problem.y, text=problem.text)
    trained = problem._replace(X=np.ascontiguousarray(head.keys_.swapaxes(0, 1).reshape(problem.X.shape)))
    betas, alphas = search_grid(12.0, 200), search_grid(10.0, 20)
    hits = np.empty(0)

    def search() -> None:
        nonlocal hits
        given = problem.queries, problem.labels, 100 * problem.text
        hits = search_hits(*given, head.keys_, head.filled_, betas, alphas)

    ours = best_seconds(search, repeats=1)
    rng = np.random.default_rng(0)
    points = [(rng.integers(200), rng.integers(20)) for _ in range(SAMPLED_POINTS)]
    found: list[float] = []
    taken = best_seconds(
        lambda: found.extend(one_point(trained, float(betas[i]), float(alphas[j])) for i, j in points), repeats=2
    )
    expected = [hits[i, j] / len(problem.labels) for i, j in points]
    assert np.allclose(found[:SAMPLED_POINTS], expected, atol=2e-3), "the two ways disagree"
    what = f"Tip-Adapter-F, {hits.size:,} points (baseline timed at {SAMPLED_POINTS}), C=100, K=16, n=1,000"
    return verdict(what, taken / SAMPLED_POINTS * hits.size / ours, 50)
