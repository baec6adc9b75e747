"""TaskRes' hand gradient against torch autograd."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import alternate, torch_on_one_thread, verdict
from kshot.methods.taskres import TaskRes
from kshot.solvers.training import cosine_rates

EPOCHS = 40


def by_autograd(problem: Data) -> np.ndarray:
    """The recipe as its authors write it: a parameter, a loss, an optimiser."""
    th = torch_on_one_thread()
    X, y, text = (th.from_numpy(array) for array in problem[:3])
    base = 10 * text
    residual = th.nn.Parameter(th.zeros_like(base))
    optimiser = th.optim.Adam([residual], lr=2e-3, weight_decay=5e-4)
    rng = np.random.RandomState(0)
    for rate in cosine_rates(EPOCHS, 2e-3, 1e-5):
        optimiser.param_groups[0]["lr"] = float(rate)
        order = th.from_numpy(rng.rand(len(y)).argsort())
        for step in range(max(1, len(y) // 256)):
            rows = order[step * 256 : (step + 1) * 256]
            weights = base + 0.5 * residual
            logits = 100 * X[rows] @ (weights / weights.norm(dim=1, keepdim=True)).T
            loss = th.nn.functional.cross_entropy(logits, y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    weights = (base + 0.5 * residual).detach()
    return (100 * weights / weights.norm(dim=1, keepdim=True)).numpy()


def main() -> int:
    problem = data(100, 16)
    ratio, head, expected, _ = alternate(
        lambda: TaskRes(epochs=EPOCHS).fit(problem.X, problem.y, text=problem.text), lambda: by_autograd(problem)
    )
    error = np.abs(head.coef_ - expected).max() / np.abs(expected).max()
    assert error < 1e-3, f"the two ways disagree by {error:.1e}"
    return verdict(f"TaskRes, C=100, K=16, d=512, {EPOCHS} epochs", ratio, 1.5)
