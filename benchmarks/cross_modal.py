"""The cross-modal probe's small steps against torch autograd."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import alternate, torch_on_one_thread, verdict
from kshot.methods.cross_modal_lp import CrossModalLP
from kshot.solvers.cross_modal import paired_batches, warm_cosine

ITERATIONS = 12_800


def by_autograd(problem: Data, iterations: int) -> np.ndarray:
    """The recipe as its authors write it: a linear layer, a loss over both halves, AdamW."""
    th = torch_on_one_thread()
    X, y, text = (th.from_numpy(array) for array in problem[:3])
    samples, labels = th.cat([X, text]), th.cat([y, th.arange(len(text))])
    weights = th.nn.Parameter(text.clone())
    optimiser = th.optim.AdamW([weights], lr=1e-4, weight_decay=0.01)
    steps = paired_batches(0, len(y), len(text), (16, 16))
    for rate in warm_cosine(ITERATIONS, 1e-4)[:iterations]:
        optimiser.param_groups[0]["lr"] = float(rate)
        rows = th.from_numpy(next(steps))
        loss = th.nn.functional.cross_entropy(100 * samples[rows] @ weights.T, labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return 100 * weights.detach().numpy()


def main() -> int:
    """All 12,800 steps of each, once."""
    problem = data(100, 16)
    head = CrossModalLP(logit_scale=100.0, iterations=ITERATIONS)
    ratio, _, expected, _ = alternate(
        lambda: head.fit(problem.X, problem.y, text=problem.text), lambda: by_autograd(problem, ITERATIONS), repeats=1
    )
    error = np.abs(head.coef_ - expected).max() / np.abs(expected).max()
    assert error < 1e-2, f"the two ways disagree by {error:.1e}"
    return verdict(f"cross-modal probe, C=100, K=16, d=512, {ITERATIONS:,} steps", ratio, 1.5)
