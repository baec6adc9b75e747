"""The numerical kernels against slow, plain versions of the same mathematics."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from kshot.solvers.adapter import Adapter, adapt, blended_feature, gradients, initial_adapter, ratio_losses
from kshot.solvers.cache import cache_scores, lay_out
from kshot.solvers.cosine_probe import train_cosine_probe
from kshot.solvers.gaussian import fit_gaussian
from kshot.solvers.logistic import logistic_path
from kshot.solvers.rows import class_means, class_sums
from kshot.solvers.text_probe import step_sizes, train_text_probe
from kshot.solvers.training import adamw, batches, cosine_rates
from problems import problem


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def cross_entropy(logits, y):
    return -np.mean(np.log(softmax(logits)[np.arange(len(y)), y]))


def clap_loss(W, X, y, anchors, penalties, scale):
    """CLAP's objective: mean cross-entropy of scale·cos plus (1/C)·sum_c l_c·|w_c − a_c|²."""
    logits = scale * X @ (W / np.linalg.norm(W, axis=1, keepdims=True)).T
    return cross_entropy(logits, y) + np.sum(penalties * np.sum((W - anchors) ** 2, axis=1)) / len(W)


def plain_clap_gradient(W, X, y, anchors, penalties, scale):
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    U = W / norms
    S = X @ U.T
    R = (softmax(scale * S) - np.eye(len(W))[y]) * scale / len(y)
    return (R.T @ X - np.sum(R * S, axis=0)[:, None] * U) / norms + (2 / len(W)) * penalties[:, None] * (W - anchors)


def test_claps_plain_gradient_is_the_slope_of_its_loss():
    data = problem(classes=3, dim=5)
    rng = np.random.default_rng(0)
    where = (data.X, data.y, 10 * data.text, rng.random(3), 100.0)
    W = 10 * data.text + rng.normal(size=data.text.shape)
    found = plain_clap_gradient(W, *where)
    for entry in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[entry] = 1e-6
        slope = (clap_loss(W + step, *where) - clap_loss(W - step, *where)) / 2e-6
        assert found[entry] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("dim", [24, 64], ids=["all dimensions", "in the span"])
@pytest.mark.parametrize("size", [8, 256], ids=["batches", "full batch"])
def test_claps_fast_steps_are_its_plain_ones(dim, size):
    data = problem(dim=dim)
    anchors, penalties = 10 * data.text, np.random.default_rng(0).random(6)
    rates = cosine_rates(20, 0.1, 1e-5, max(1, 24 // size))
    W, velocity = anchors.copy(), np.zeros_like(anchors)
    for rate, chosen in zip(rates, batches(7, 24, 24, size), strict=False):
        rows = slice(None) if chosen is None else chosen
        velocity = 0.9 * velocity + plain_clap_gradient(W, data.X[rows], data.y[rows], anchors, penalties, 100.0)
        W = W - rate * velocity
    found = train_cosine_probe(
        data.X, data.y, anchors, penalties, batches(7, 24, 24, size), rates, scale=100.0, momentum=0.9
    )
    assert np.allclose(found, W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", [9, 23, 24, 25, 90])
def test_gdas_precision_is_the_pseudo_inverse_for_any_row(d):
    rng = np.random.default_rng(d)
    X, y, others = rng.standard_normal((24, d)), np.repeat(np.arange(6), 4), rng.standard_normal((5, d))
    means = class_means(X, y, 6)
    Z = X - means[y]
    P = d * np.linalg.pinv(Z.T @ Z + np.trace(Z.T @ Z) / 23 * np.eye(d))
    branch = fit_gaussian(X, y, means)
    assert np.allclose(branch.precision.times(others), others @ P, rtol=1e-10)
    assert np.allclose(branch.weights, means @ P, rtol=1e-10)


def test_lpp_in_row_blocks_equals_one_plain_step(monkeypatch):
    data = problem(shots=5)
    monkeypatch.setattr("kshot.solvers.rows.BLOCK_ROWS", 7)
    start, bias = class_sums(data.X, data.y, 6), np.linspace(-0.1, 0.1, 6)
    lr_w, lr_alpha, alpha = step_sizes(data.X, data.y, data.text, 250.0)
    W, b, found_alpha = train_text_probe(
        data.X, data.y, data.text, start, bias, np.full(6, alpha), lr_w, lr_alpha, epochs=1, momentum=0.9, alpha_every=1
    )
    text_logits = data.X @ data.text.T
    R = (softmax(data.X @ start.T + bias + alpha * text_logits) - np.eye(6)[data.y]) / len(data.y)
    assert np.allclose(W, start - lr_w * R.T @ data.X)
    assert np.allclose(b, bias - lr_w * R.sum(axis=0))
    assert np.allclose(found_alpha, alpha - lr_alpha * (R * text_logits).sum(axis=0))


def test_batches_follow_the_official_order():
    """Whole batches from the argsort of one uniform draw per epoch; what is left over is skipped."""
    steps = batches(3, rows=70, images=70, size=32)
    generator = np.random.RandomState(3)
    for _ in range(2):
        order = generator.rand(70).argsort()
        assert np.array_equal(next(steps), order[:32])
        assert np.array_equal(next(steps), order[32:64])
    views = batches(3, rows=300, images=30, size=256)
    assert next(views).shape == (256,)
    assert next(batches(3, rows=200, images=10, size=256)) is None


def test_cache_sums_classes_of_any_size():
    data = problem(counts=[2, 5, 1, 2, 7, 4])
    rows = np.random.default_rng(0).permutation(len(data.y))
    table, filled, shot = lay_out(data.X[rows], data.y[rows], 6)
    assert np.array_equal(table[shot, data.y[rows]], data.X[rows])
    assert filled.sum() == len(rows)
    expected = np.exp(-3.5 * (1 - data.test.X @ data.X.T)) @ np.eye(6)[data.y]
    assert np.allclose(cache_scores(data.test.X, table, filled, 3.5), expected)


def test_adapter_gradients_are_those_of_the_loss():
    data = problem(dim=8)
    adapter = initial_adapter(8, 2, seed=1, dtype=np.dtype(float))

    def loss(down, up):
        feature, _ = blended_feature(adapt(Adapter(down, up), data.X), data.X, 0.3)
        return cross_entropy(20 * feature @ data.text.T, data.y)

    found = gradients(adapter, data.X, data.y, data.text, 0.3, 20.0)
    for which, gradient in enumerate(found):
        for place in np.ndindex(gradient.shape):
            moved = [[w.copy() for w in adapter] for _ in range(2)]
            moved[0][which][place] += 1e-6
            moved[1][which][place] -= 1e-6
            numeric = (loss(*moved[0]) - loss(*moved[1])) / 2e-6
            assert gradient[place] == pytest.approx(numeric, abs=1e-6)


def test_ratio_losses_are_cross_entropies():
    data = problem()
    adapter = initial_adapter(24, 4, seed=1, dtype=np.dtype(float))
    adapted = adapt(adapter, data.X)
    ratios = np.array([0.0, 0.3, 1.0])
    expected = [
        cross_entropy(100 * blended_feature(adapted, data.X, r)[0] @ data.text.T, data.y) for r in ratios.tolist()
    ]
    assert np.allclose(ratio_losses(adapted, data.X, data.y, data.text, ratios, 100.0), expected)


def test_adamw_on_one_number():
    """Loshchilov and Hutter, Algorithm 2, written out for f(w) = w² with the default constants."""
    weight = np.array([1.5])
    update = adamw([weight], weight_decay=0.01)
    w, m, v = 1.5, 0.0, 0.0
    for step in range(1, 6):
        g = 2 * w
        update([2 * weight], 0.1)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.1 * 0.01 * w - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        assert weight[0] == pytest.approx(w, rel=1e-10)


def test_adamw_in_blocks_is_the_same_to_the_last_bit(monkeypatch):
    rng = np.random.default_rng(0)
    shapes = [(7, 5), (5, 7)]
    start, gradients = ([rng.standard_normal(shape) for shape in shapes] for _ in range(2))

    def after_three_steps():
        weights = [w.copy() for w in start]
        update = adamw(weights)
        for _ in range(3):
            update(gradients, 0.1)
        return weights

    whole = after_three_steps()
    monkeypatch.setattr("kshot.solvers.training.BLOCK", 10)
    assert all(np.array_equal(a, b) for a, b in zip(whole, after_three_steps(), strict=True))


def test_logistic_regression_equals_scikit_learns():
    data = problem(noise=1.0)
    strengths = np.array([0.1, 10.0])
    path = logistic_path(data.X, data.y, 6, strengths, tolerance=1e-9, max_iterations=2000)
    for strength, found in zip(strengths, path, strict=True):
        expected = LogisticRegression(C=strength, tol=1e-9, max_iter=5000).fit(data.X, data.y)
        assert np.allclose(found[:, :-1], expected.coef_, atol=1e-4)
        centred = found[:, -1] - found[:, -1].mean()
        assert np.allclose(centred, expected.intercept_ - expected.intercept_.mean(), atol=1e-4)
