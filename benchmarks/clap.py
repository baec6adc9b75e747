"""CLAP's hand gradient against the official code's arithmetic by torch autograd."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import alternate, of_the_limit, products, torch_on_one_thread, verdict
from kshot.methods.clap import CLAP
from kshot.solvers.training import cosine_rates


def by_autograd(problem: Data, seed: int, epochs: int) -> np.ndarray:
    """What the official code computes (commit 2b18ea4): it shuffles a copy of all rows every epoch, and a step makes
    rows and weights unit vectors, multiplies them, and goes back through cross-entropy and penalty."""
    th = torch_on_one_thread()
    X, y, text = (th.from_numpy(array) for array in problem[:3])
    anchors = 10 * text
    confidence = (100 * X @ text.T).softmax(dim=1)[th.arange(len(y)), y]
    penalty = th.stack([confidence[y == c].mean() for c in range(len(text))])
    W = th.nn.Parameter(anchors.clone())
    optimiser = th.optim.SGD([W], lr=0.1, momentum=0.9)
    rng = np.random.RandomState(seed)
    for rate in cosine_rates(epochs, 0.1, 1e-5):
        optimiser.param_groups[0]["lr"] = float(rate)
        order = th.from_numpy(rng.rand(len(y)).argsort())
        shuffled, labels = X[order], y[order]
        for step in range(max(1, len(y) // 256)):
            batch = slice(step * 256, (step + 1) * 256)
            rows = shuffled[batch] / shuffled[batch].norm(dim=1, keepdim=True)
            directions = W / W.norm(dim=1, keepdim=True)
            logits = rows @ directions.T * 100
            loss = th.nn.functional.cross_entropy(logits, labels[batch])
            loss = loss + (penalty * (W - anchors).pow(2).sum(dim=1)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return W.detach().numpy()


def main() -> int:
    missed = 0
    for classes, epochs in ((100, 60), (1000, 8)):
        problem, method = data(classes, 16), CLAP(seed=0, epochs=epochs)
        ratio, head, expected, seconds = alternate(
            lambda p=problem, m=method: m.fit(p.X, p.y, text=p.text),
            lambda p=problem, e=epochs: by_autograd(p, 0, e),
            repeats=3,
        )
        same_predictions(problem, head.coef_, expected)
        name = f"CLAP, C={classes}, K=16, d=512, {epochs} epochs"
        steps = epochs * max(1, len(problem.y) // 256)
        missed += of_the_limit(name, ratio, seconds, lambda p=problem, n=steps: products(p.X[:256], p.text, n))
    problems = [data(10, 1, seed=seed) for seed in range(5)]
    ratio, found, expected, _ = alternate(
        lambda: [CLAP(seed=seed).fit(p.X, p.y, text=p.text).coef_ for seed, p in enumerate(problems)],
        lambda: [by_autograd(problem, seed, 300) for seed, problem in enumerate(problems)],
    )
    for problem, one, other in zip(problems, found, expected, strict=True):
        same_predictions(problem, one, other)
    return missed + verdict("CLAP, C=10, K=1, d=512, five seeds", ratio, 15)


def same_predictions(problem: Data, *weights: np.ndarray) -> None:
    one, other = ((problem.queries @ (W / np.linalg.norm(W, axis=1, keepdims=True)).T).argmax(axis=1) for W in weights)
    assert np.mean(one == other) > 0.998, "the two ways disagree"
