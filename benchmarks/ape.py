"""APE's search of 80,000 points from one affinity against recomputing every point."""

import numpy as np

from benchmarks.data import Data, data
from benchmarks.measure import search_ratio, torch_on_one_thread, verdict
from kshot.methods.ape import APE

SAMPLED_POINTS = 8


def one_point(problem: Data, channels: np.ndarray, beta: float, alpha: float, gamma: float) -> float:
    """Accuracy at one (beta, alpha, gamma), as the loops of the official code compute it."""
    th = torch_on_one_thread()
    X, y, text, queries, labels = (th.from_numpy(array) for array in problem)
    refined = [rows[:, channels] / rows[:, channels].norm(dim=1, keepdim=True) for rows in (X, text, queries)]
    keys, words, rows = refined
    own = (keys @ words.T).softmax(dim=1)[th.arange(len(y)), y]
    weights = (gamma * ((1 + 1e-6) / (own + 1e-6)).log2()).exp()
    values = th.nn.functional.one_hot(y).float() * weights[:, None]
    cache = (-beta * (1 - rows @ keys.T)).exp() @ values
    logits = 100 * queries @ text.T + alpha * cache
    return float((logits.argmax(dim=1) == labels).float().mean())


def main() -> int:
    problem = data(100, 16)
    head = APE(tune="val")
    validation = (problem.queries, problem.labels)
    grid = head.knob_grid()
    ratio, accuracies = search_ratio(
        lambda: head.fit(problem.X, problem.y, text=problem.text, validation=validation),
        lambda *point: one_point(problem, head.channels_, *point),
        grid,
        SAMPLED_POINTS,
    )
    best = one_point(problem, head.channels_, head.beta_, head.alpha_, head.gamma_)
    assert max(accuracies) <= head.selected_["accuracy"].value + 1e-3, "the two ways disagree"
    assert abs(best - head.selected_["accuracy"].value) <= 1e-3, "the two ways disagree"
    what = f"APE, {len(grid):,} points (baseline timed at {SAMPLED_POINTS}), C=100, K=16, d=512, n=1,000"
    return verdict(what, ratio, 50)
