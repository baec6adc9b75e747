"""The blending family on cases small enough to compute by hand."""

import numpy as np
import pytest

from kshot import NCM, CentredJSBlend, JSBlend, LOOBlend, MSEOracleBlend, OracleBlend, ZeroShot
from kshot.errors import UndefinedError
from kshot.types import Labelled
from problems import problem


def unit(rows):
    rows = np.asarray(rows, float)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


X = unit([[1, 0.2, 0], [1, -0.2, 0], [0, 0.3, 1], [0, -0.1, 1]])
y = np.array([0, 0, 1, 1])
T = unit([[1, 1, 0], [0, 1, 1]])


def test_zero_shot_ignores_the_pictures():
    assert np.allclose(ZeroShot().fit(X, y, text=T).coef_, ZeroShot().fit(text=T).coef_)


def test_ncm_is_the_cosine_to_the_means():
    expected = unit([X[:2].mean(axis=0), X[2:].mean(axis=0)])
    assert np.allclose(NCM().fit(X, y).coef_, 100 * expected)


def test_james_stein_by_hand():
    head = JSBlend().fit(X, y, text=T)
    ratios = []
    for c in range(2):
        own = X[y == c]
        mu = own.mean(axis=0)
        v = np.sum((own - mu) ** 2) / (2 * 1)
        ratios.append(max(0, 1 - v / np.sum((T[c] - mu) ** 2)))
    expected = unit([lam * X[y == c].mean(axis=0) + (1 - lam) * T[c] for c, lam in enumerate(ratios)])
    assert np.allclose(head.coef_, 100 * expected)
    assert head.selected_["lambda"].value["mean"] == pytest.approx(np.mean(ratios))
    assert head.selected_["lambda"].from_ == "support"


def test_centring_changes_the_distance_but_not_the_blend():
    head = CentredJSBlend().fit(X, y, text=T)
    means = np.stack([X[y == c].mean(axis=0) for c in range(2)])
    offset = (T - means).mean(axis=0)
    ratios = []
    for c in range(2):
        v = np.sum((X[y == c] - means[c]) ** 2) / 2
        ratios.append(max(0, 1 - v / np.sum((T[c] - offset - means[c]) ** 2)))
    expected = unit([lam * means[c] + (1 - lam) * T[c] for c, lam in enumerate(ratios)])
    assert np.allclose(head.coef_, 100 * expected)


def test_mse_oracle_uses_the_pool_alone_for_its_moments():
    data = problem()
    head = MSEOracleBlend().fit(data.X, data.y, text=data.text, pool=data.pool)
    expected = []
    for c in range(6):
        outside = data.pool.X[data.pool.y == c]
        g2 = np.sum((data.text[c] - outside.mean(axis=0)) ** 2)
        lam = g2 / (g2 + np.trace(np.cov(outside.T)) / 4)
        expected.append(lam * data.X[data.y == c].mean(axis=0) + (1 - lam) * data.text[c])
    assert np.allclose(head.coef_, 100 * unit(expected))


def test_oracle_is_at_least_as_good_as_every_ratio_and_takes_the_smallest_of_equals():
    data = problem(noise=1.2)
    head = OracleBlend().fit(data.X, data.y, text=data.text, test=data.test)
    means = np.stack([data.X[data.y == c].mean(axis=0) for c in range(6)])
    accuracies = [
        np.mean((data.test.X @ unit(lam * means + (1 - lam) * data.text).T).argmax(axis=1) == data.test.y)
        for lam in np.arange(101) / 100
    ]
    assert head.score(*data.test) == max(accuracies)
    assert head.selected_["lambda"].value == int(np.argmax(accuracies)) / 100
    assert np.allclose(head.selected_["accuracy"].value, accuracies)


def test_loo_does_not_see_that_a_shot_explains_itself():
    """Two random shots per class: NCM fits its own shots perfectly, leave-one-out does not reward that."""
    rng = np.random.default_rng(0)
    pure_noise = unit(rng.normal(size=(40, 32)))
    labels = np.repeat(np.arange(20), 2)
    text = unit(pure_noise.reshape(20, 2, 32).mean(axis=1) + 0.05 * rng.normal(size=(20, 32)))
    assert NCM().fit(pure_noise, labels).score(pure_noise, labels) == 1
    assert LOOBlend().fit(pure_noise, labels, text=text).selected_["lambda"].value < 0.5


def test_k_correction_moves_the_ratio_towards_the_pictures():
    data = problem(shots=2, noise=1.5)
    plain = LOOBlend().fit(data.X, data.y, text=data.text)
    corrected = LOOBlend(k_correction=True).fit(data.X, data.y, text=data.text)
    before = plain.selected_["lambda"].value
    assert corrected.selected_["lambda_before"].value == before
    assert corrected.selected_["lambda"].value == pytest.approx(2 * before / (1 + before))


def test_single_shots_only_with_permission():
    data = problem(counts=[1, 3, 3, 3, 3, 3])
    with pytest.raises(UndefinedError, match="class 0 has 1"):
        LOOBlend().fit(data.X, data.y, text=data.text)
    head = LOOBlend(allow_single=True, k_correction=True).fit(data.X, data.y, text=data.text)
    assert head.score(*data.test) > 0.5


def test_repr_and_labels_as_whole_floats():
    assert repr(LOOBlend(k_correction=True)) == "LOOBlend(k_correction=True, allow_single=False, logit_scale=None)"
    assert NCM().fit(X, y.astype(float)).score(*Labelled(X, y)) == 1
