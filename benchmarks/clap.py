"""CLAP's hand gradient against torch autograd."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import Claim, ratio, report, torch
from kshot.methods.clap import CLAP
from kshot.solvers.cosine_probe import anchor_confidence, train_cosine_probe
from kshot.solvers.schedule import batches, cosine_rates


def by_autograd(problem: Data, seed: int, epochs: int) -> np.ndarray:
    """The recipe as one would write it in torch: a parameter, a loss, an optimiser."""
    th = torch()
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
        for step in range(max(1, len(y) // 256)):
            rows = order[step * 256 : (step + 1) * 256]
            directions = W / W.norm(dim=1, keepdim=True)
            logits = 100 * X[rows] @ directions.T
            loss = th.nn.functional.cross_entropy(logits, y[rows])
            loss = loss + (penalty * (W - anchors).pow(2).sum(dim=1)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return W.detach().numpy()


def together(problems: list[Data], epochs: int) -> np.ndarray:
    X, y, text = (np.stack(arrays) for arrays in list(zip(*problems, strict=True))[:3])
    penalties = np.stack([anchor_confidence(p.X, p.y, p.text, 100.0) for p in problems])
    steps = batches(range(len(problems)), X.shape[1], X.shape[1], 256)
    rates = cosine_rates(epochs, 0.1, 1e-5)
    return train_cosine_probe(X, y, 10 * text, penalties, steps, rates, scale=100.0, momentum=0.9)


def main() -> bool:
    claims: list[Claim] = []
    for classes, epochs in ((100, 20), (1000, 3)):
        problem = data(classes, 16)
        claim, expected, head = ratio(
            f"CLAP, C={classes}, K=16, d=512, {epochs} epochs",
            2.5,
            lambda problem=problem, epochs=epochs: by_autograd(problem, 0, epochs),
            lambda problem=problem, epochs=epochs: CLAP(seed=0, epochs=epochs).fit(
                problem.X, problem.y, text=problem.text
            ),
        )
        same_predictions(problem, expected, head.coef_)
        claims.append(claim)
    problems = [data(10, 1, seed=seed) for seed in range(5)]
    claim, expected, found = ratio(
        "CLAP, C=10, K=1, d=512, five seeds together",
        15,
        lambda: [by_autograd(problem, seed, 300) for seed, problem in enumerate(problems)],
        lambda: together(problems, 300),
    )
    for problem, one, other in zip(problems, expected, found, strict=True):
        same_predictions(problem, one, other)
    return report([*claims, claim])


def same_predictions(problem: Data, expected: np.ndarray, found: np.ndarray) -> None:
    one, other = (
        (problem.queries @ (W / np.linalg.norm(W, axis=1, keepdims=True)).T).argmax(axis=1)
        for W in (expected, found)
    )
    assert np.mean(one == other) > 0.998, "the two ways disagree"


if __name__ == "__main__":
    main()
