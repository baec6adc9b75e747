"""Two encoders know more than one, and one alone is its own head."""

import numpy as np
import pytest

from kshot import GaussProbe
from kshot.errors import InputError
from kshot.methods.several import SeveralEncoders
from problems import problem


def two_encoders(noise=1.6):
    """Pictures whose features err independently."""
    first, second = (problem(seed=seed, classes=8, shots=4, noise=noise, n_test=400) for seed in (0, 1))
    order = [np.argsort(data.y, kind="stable") for data in (first, second)]
    same = np.concatenate([np.flatnonzero(second.test.y == c)[:30] for c in range(8)])
    shown = np.concatenate([np.flatnonzero(first.test.y == c)[:30] for c in range(8)])
    X = {"a": first.X[order[0]], "b": second.X[order[1]]}
    queries = {"a": first.test.X[shown], "b": second.test.X[same]}
    return X, first.y[order[0]], {"a": first.text, "b": second.text}, queries, first.test.y[shown]


def test_two_encoders_are_better_than_the_better_one():
    X, y, text, queries, truth = two_encoders()
    both = SeveralEncoders().fit(X, y, text=text)
    alone = [np.mean(GaussProbe().fit(X[e], y, text=text[e]).predict(queries[e]) == truth) for e in X]
    assert np.mean(both.predict(queries) == truth) > max(alone) + 0.05
    assert np.allclose(both.predict_proba(queries).sum(axis=1), 1)


def test_the_scores_are_the_mean_of_the_logits_with_names_and_constants():
    X, y, text, queries, _ = two_encoders()
    names, constants = [f"class {c}" for c in range(8)], {"b": {"logit_scale": 20.0}}
    both = SeveralEncoders().fit(X, np.array(names)[y], text=text, classes=names, constants=constants)
    heads = [GaussProbe().fit(X["a"], y, text=text["a"]), GaussProbe(logit_scale=20.0).fit(X["b"], y, text=text["b"])]
    expected = (heads[0].scores(queries["a"]) + heads[1].scores(queries["b"])) / 2
    assert np.allclose(both.scores(queries), expected)
    assert set(both.predict(queries)) <= set(names)


def test_an_encoder_without_text_or_features_is_refused_by_name():
    X, y, text, queries, _ = two_encoders()
    with pytest.raises(InputError, match="text is of a"):
        SeveralEncoders().fit(X, y, text={"a": text["a"]})
    head = SeveralEncoders().fit(X, y, text=text)
    with pytest.raises(InputError, match="no features of b"):
        head.scores({"a": queries["a"]})
    with pytest.raises(InputError, match="encoder"):
        head.scores({**queries, "c": queries["a"]})
