"""LP++ with one product each way against the official code's arithmetic by torch autograd."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import alternate, of_the_limit, products, torch_on_one_thread, verdict
from kshot.methods.lpp import LPP


def by_autograd(problem: Data, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """What the official code computes on the shots (commit 4d1b771): the text's scores anew in every epoch, alpha as a
    matrix of equal rows, the accuracy on the shots; alpha's gradient is never cleared."""
    th = torch_on_one_thread()
    X, y, text = (th.from_numpy(array) for array in problem[:3])
    lr_w = 4 * len(y) / float(th.linalg.eigvalsh(X.T @ X)[-1])
    lr_alpha = len(y) / (4 * float((X @ text.T).pow(2).sum(dim=0).max()))
    classes = [y == c for c in range(len(text))]
    start = th.stack([(X[rows] @ text[c]).mean() for c, rows in enumerate(classes)]).mean()
    W = th.nn.Parameter(th.stack([X[rows].sum(dim=0) for rows in classes]))
    b = th.nn.Parameter(th.zeros(len(text)))
    alpha = th.nn.Parameter(250 * start * th.ones(len(text)))
    optimiser = th.optim.SGD([W, b], lr=lr_w, momentum=0.9)
    for epoch in range(1, epochs + 1):
        every_row = th.ones(len(y), 1) @ alpha[None]
        logits = th.nn.functional.linear(X, W, b) + every_row * (X @ text.T)
        loss = th.nn.functional.cross_entropy(logits, y)
        (logits.argmax(dim=1) == y).float().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if epoch % 10 == 0:
            alpha.data -= lr_alpha * alpha.grad
    return (W + alpha[:, None] * text).detach().numpy(), b.detach().numpy()


def by_hand(problem: Data, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    head = LPP(bias_init=[0.0] * len(problem.text), epochs=epochs).fit(problem.X, problem.y, text=problem.text)
    return head.coef_, head.intercept_


def main() -> int:
    missed = 0
    for classes, epochs in ((100, 100), (1000, 15)):
        problem = data(classes, 16)
        ratio, head, expected, seconds = alternate(
            lambda p=problem, e=epochs: by_hand(p, e), lambda p=problem, e=epochs: by_autograd(p, e), repeats=3
        )
        same_predictions(problem, head, expected)
        name, steps = f"LP++, C={classes}, K=16, d=512, {epochs} epochs", epochs * len(problem.y) // 800
        missed += of_the_limit(name, ratio, seconds, lambda p=problem, n=steps: products(p.X[:800], p.text, n))
    problems = [data(10, 1, seed=seed) for seed in range(5)]
    ratio, found, expected, _ = alternate(
        lambda: [by_hand(problem, 300) for problem in problems],
        lambda: [by_autograd(problem, 300) for problem in problems],
    )
    for problem, one, other in zip(problems, found, expected, strict=True):
        same_predictions(problem, one, other)
    return missed + verdict("LP++, C=10, K=1, d=512, five seeds", ratio, 15)


def same_predictions(problem: Data, *heads: tuple[np.ndarray, np.ndarray]) -> None:
    one, other = ((problem.queries @ W.T + b).argmax(axis=1) for W, b in heads)
    assert np.mean(one == other) > 0.998, "the two ways disagree"
