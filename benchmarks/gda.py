"""GDA with a Cholesky factor and one pass per alpha grid against the pseudo-inverse form of the paper's code."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import alternate, torch_on_one_thread, verdict
from kshot.methods.gda import ALPHAS, GDA


def by_pinv(problem: Data, alpha: float | str) -> float:
    """The recipe as one would write it in torch; returns the alpha it ends with."""
    th = torch_on_one_thread()
    X, y, text, validation, labels = (th.from_numpy(array) for array in problem)
    classes, d = text.shape
    means = th.stack([X[y == c].mean(dim=0) for c in range(classes)])
    centred = X - means[y]
    covariance = (len(X) - 1) * centred.T.cov() + centred.T.cov().trace() * th.eye(d)
    precision = d * th.linalg.pinv(covariance)
    W = precision @ means.T
    b = -np.log(classes) - (means * W.T).sum(dim=1) / 2
    if not isinstance(alpha, str):
        return alpha
    accuracies = []
    for candidate in ALPHAS.tolist():
        if alpha == "val":
            logits = 100 * validation @ text.T + candidate * (validation @ W + b)
            accuracies.append((logits.argmax(dim=1) == labels).float().mean())
        else:
            counts = th.bincount(y)[y][:, None]
            left = (counts * means[y] - X) / (counts - 1)
            own = ((X - left / 2) * (left @ precision)).sum(dim=1) - np.log(classes)
            generative = X @ W + b
            generative[th.arange(len(y)), y] = own
            logits = 100 * X @ text.T + candidate * generative
            accuracies.append((logits.argmax(dim=1) == y).float().mean())
    return float(ALPHAS[int(th.stack(accuracies).argmax())])


def main() -> int:
    missed = compare("C=1000, K=16, d=512, 16,000 validation rows", data(1000, 16, n=16_000))
    small = data(10, 16, dim=1280, n=1000)
    return missed + compare("C=10, K=16, d=1280, fewer shots than dimensions", small)


def compare(name: str, problem: Data) -> int:
    three: list[float | str] = [1.0, "loo", "val"]

    def ours() -> list[float]:
        text, validation = problem.text, (problem.queries, problem.labels)
        heads = [GDA(alpha=alpha).fit(problem.X, problem.y, text=text) for alpha in (1.0, "loo")]
        heads.append(GDA(alpha="val").fit(problem.X, problem.y, text=text, validation=validation))
        return [head.selected_["alpha"].value for head in heads]

    ratio, found, expected, _ = alternate(ours, lambda: [by_pinv(problem, alpha) for alpha in three], repeats=3)
    assert expected == found, f"the two ways choose {expected} and {found}"
    return verdict(f"GDA, three alphas, {name}", ratio, 8)
