"""ProKeR's whole official grid from one eigendecomposition per beta against solving every point."""

from benchmarks.data import Data, data
from benchmarks.measure import search_ratio, torch_on_one_thread, verdict
from kshot.methods.proker import ProKeR

SAMPLED_POINTS = 6
# The official grid of Flowers102 and DTD.
GRID = {
    "beta_low": 0.1,
    "beta_high": 10.0,
    "beta_points": 20,
    "ridge_low": 0.001,
    "ridge_high": 10.0,
    "ridge_points": 100,
}


def one_point(problem: Data, beta: float, ridge: float) -> float:
    """Accuracy at one (beta, lambda), as the search of the official code computes it."""
    th = torch_on_one_thread()
    X, y, text, queries, labels = (th.from_numpy(array) for array in problem)
    target = th.nn.functional.one_hot(y).float() - X @ text.T
    gram = (-beta * (1 - X @ X.T)).exp()
    coefficients = th.linalg.solve(gram / ridge + th.eye(len(y)), target)
    scores = queries @ text.T + (-beta * (1 - queries @ X.T)).exp() @ coefficients
    return float((scores.argmax(dim=1) == labels).float().mean())


def main() -> int:
    problem = data(100, 16)
    head = ProKeR(tune="val", **GRID)
    validation = (problem.queries, problem.labels)
    grid = head.knob_grid()
    ratio, accuracies = search_ratio(
        lambda: head.fit(problem.X, problem.y, text=problem.text, validation=validation),
        lambda *point: one_point(problem, *point),
        grid,
        SAMPLED_POINTS,
    )
    best = head.selected_["accuracy"].value
    chosen = one_point(problem, head.selected_["beta"].value, head.selected_["ridge"].value)
    assert max(accuracies) <= best + 2e-3, "the two ways disagree"
    assert abs(chosen - best) <= 2e-3, "the two ways disagree"
    what = f"ProKeR, {len(grid):,} points (baseline timed at {SAMPLED_POINTS}), C=100, K=16, d=512, n=1,000"
    return verdict(what, ratio, 20)
