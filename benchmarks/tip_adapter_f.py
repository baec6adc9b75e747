"""The search that follows Tip-Adapter-F's training, on its trained keys, against recomputing every point."""

import numpy as np

from benchmarks.data import data
from benchmarks.measure import search_ratio, verdict
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

    def gap(i: int, j: int) -> float:
        return one_point(trained, float(betas[i]), float(alphas[j])) - hits[i, j] / len(problem.labels)

    ratio, gaps = search_ratio(search, gap, list(np.ndindex(200, 20)), SAMPLED_POINTS)
    assert np.abs(gaps).max() <= 2e-3, "the two ways disagree"
    what = f"Tip-Adapter-F, {hits.size:,} points (baseline timed at {SAMPLED_POINTS}), C=100, K=16, n=1,000"
    return verdict(what, ratio, 50)
