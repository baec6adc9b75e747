"""A hundred classes of sixteen shots: heads against their papers' formulas in plain numpy, which imports no kernel.

The official codes' outputs at this size are too large to be kept; `make test-ci` compares with them where they are.
"""

from collections import namedtuple

import numpy as np
import pytest

from kshot import CLAP, GDA, ProKeR, SSText, TipAdapter

C, K, D, SCALE, ANCHOR = 100, 16, 48, 100.0, 10.0


Data = namedtuple("Data", "X y Y text queries")


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(C, D))
    y = rng.permutation(np.repeat(np.arange(C), K))
    X, text, queries = (
        unit(rows + scale * rng.normal(size=rows.shape))
        for rows, scale in ((centres[y], 1.5), (centres, 1.0), (centres[:20], 1.5))
    )
    return Data(X, y, np.eye(C)[y], text, queries)


def zero_shot(data):
    return SCALE * data.queries @ data.text.T


def ss_text(data):
    """Every weight is 1/N, at least 1e-3."""
    X, y, Y, text, queries = data
    moved = text + SCALE / (len(y) * max(1 / len(y), 1e-3)) * Y.T @ X
    return SCALE * queries @ unit(moved).T


def proker(data):
    X, y, Y, text, queries = data
    kernel = np.exp(-2.0 * (1 - X @ X.T))
    coefficients = np.linalg.solve(kernel / 0.05 + np.eye(len(y)), Y - X @ text.T)
    return SCALE * (queries @ text.T + np.exp(-2.0 * (1 - queries @ X.T)) @ coefficients)


def tip_adapter(data):
    return zero_shot(data) + 1.7 * np.exp(-5.5 * (1 - data.queries @ data.X.T)) @ data.Y


def gda(data):
    X, y, Y, _, queries = data
    means = Y.T @ X / K
    Z = X - means[y]
    scatter = Z.T @ Z
    P = D * np.linalg.inv(scatter + np.trace(scatter) / (len(y) - 1) * np.eye(D))
    bias = -np.log(C) - np.einsum("cd,de,ce->c", means, P, means) / 2
    return zero_shot(data) + 3.0 * (queries @ P @ means.T + bias)


def clap(data):
    """Thirty epochs of one batch each, whose gradient is written as the derivative of the loss by the chain rule."""
    X, y, Y, text, queries = data
    anchors = ANCHOR * text
    own = softmax(SCALE * X @ text.T)[np.arange(len(y)), y]
    penalties = np.array([own[y == c].mean() for c in range(C)])
    rates = [1e-5] + [0.05 * (1 + np.cos(np.pi * epoch / 30)) for epoch in range(29)]
    W, velocity = anchors.copy(), np.zeros_like(anchors)
    for rate in rates:
        lengths = np.linalg.norm(W, axis=1, keepdims=True)
        U = W / lengths
        by_direction = SCALE / len(y) * (softmax(SCALE * X @ U.T) - Y).T @ X
        tangent = by_direction - np.sum(by_direction * U, axis=1, keepdims=True) * U
        velocity = 0.9 * velocity + tangent / lengths + 2 / C * penalties[:, None] * (W - anchors)
        W = W - rate * velocity
    return SCALE * queries @ unit(W).T


HEADS = {
    ss_text: SSText(),
    proker: ProKeR(beta=2.0, ridge=0.05),
    tip_adapter: TipAdapter(tune="fixed", beta=5.5, alpha=1.7),
    gda: GDA(alpha=3.0),
    clap: CLAP(epochs=30, batch_size=C * K),
}


@pytest.mark.parametrize("formula", HEADS, ids=lambda formula: formula.__name__)
def test_a_head_is_its_formula(formula, data):
    X, y, _, text, queries = data
    head = HEADS[formula].fit(X, y, text=text, constants={"logit_scale": SCALE, "anchor_scale": ANCHOR})
    expected = formula(data)
    np.testing.assert_allclose(head.scores(queries), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
