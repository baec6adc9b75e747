"""What labels are, and in which order rows and classes come, changes how answers are written and nothing else.

Every public head is fitted through `fit`. Names of classes must not change a bit, because a head sees row numbers only.
An order of classes or shots may change rounding; heads whose batches follow that order are not asked.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshot.errors import UndefinedError
from kshot.methods.base import Classifier
from kshot.types import Labelled
from problems import HEADS, Problem, problem, quick

CLOSED = [name for name, head in HEADS.items() if head.info.closed_form]
few = settings(max_examples=4)

# Six labels in the order of the text's rows; none is sorted but the last.
KINDS = {
    "strings": ["wolf", "ant", "newt", "bee", "cod", "asp"],
    "permuted": [3, 0, 5, 1, 4, 2],
    "negative": [-1, 4, -6, 0, 2, -3],
    "gaps": [70, 0, 5, 12, 3, 1000],
    "numpy scalars": [np.int16(9), np.int16(2), np.int16(0), np.int16(-4), np.int16(1), np.int16(3)],
    "numpy strings": [np.str_(one) for one in "fbdace"],
    "row numbers": [0, 1, 2, 3, 4, 5],
}
# One class may have no shots where text stands in for it.
counts = st.lists(st.integers(2, 5), min_size=6, max_size=6) | st.permutations([0, 3, 2, 4, 3, 3])
seeds = st.integers(0, 10_000)


def made(name: str) -> Classifier:
    return HEADS[name](**quick(HEADS[name]))


def fitted(name: str, data: Problem, classes) -> Classifier | None:
    """None where the head is not defined for these shots."""
    head = made(name)
    evidence = data.evidence(head.info.sees)
    try:
        return head.fit(**evidence, classes=classes)
    except UndefinedError:
        return None


def called(data: Problem, names) -> Problem:
    return data.sent_through(lambda rows: rows, lambda y: np.array(names)[y])


def reordered(data: Problem, order) -> Problem:
    """The shots in another order, and everything else as it was."""
    return Problem(data.X[order], data.y[order], data.text, data.pool, data.validation, data.test)


def near(found, expected):
    return np.allclose(found, expected, rtol=0, atol=1e-7 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HEADS)
@settings(max_examples=2)
@given(shots=counts, seed=seeds)
def test_the_names_of_classes_are_written_and_nothing_else(name, kind, shots, seed):
    data, names = problem(seed, counts=shots, n_test=30), KINDS[kind]
    plain, head = fitted(name, data, range(6)), fitted(name, called(data, names), names)
    assert (plain is None) == (head is None)
    if plain is None or head is None:
        return
    rows = plain.predict(data.test.X)
    assert np.array_equal(head.scores(data.test.X), plain.scores(data.test.X))
    assert head.predict(data.test.X).tolist() == np.array(names)[rows].tolist()
    assert head.score(data.test.X, np.array(names)[data.test.y]) == np.mean(rows == data.test.y)
    asked = head.among([names[4], names[0]])
    assert np.array_equal(asked.scores(data.test.X), head.scores(data.test.X)[:, [4, 0]])
    assert asked.predict(data.test.X).tolist() == [
        names[4 if four >= zero else 0] for four, zero in asked.scores(data.test.X)
    ]


@pytest.mark.parametrize("name", HEADS)
@given(seed=seeds)
@settings(max_examples=2)
def test_booleans_are_two_classes(name, seed):
    data = problem(seed, classes=2, n_test=30)
    plain = fitted(name, data, range(2))
    assert plain is not None
    for names in ([False, True], [True, False]):
        head = fitted(name, called(data, names), names)
        assert head is not None
        assert head.predict(data.test.X).dtype == bool
        assert head.predict(data.test.X).tolist() == np.array(names)[plain.predict(data.test.X)].tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.int32, np.float32, object])
@pytest.mark.parametrize("name", HEADS)
def test_numbers_of_any_dtype_are_the_same_numbers(name, dtype):
    data = problem()
    plain = fitted(name, data, None)
    head = fitted(name, data.sent_through(lambda rows: rows, lambda y: y.astype(dtype)), None)
    assert plain is not None
    assert head is not None
    assert np.array_equal(head.scores(data.test.X), plain.scores(data.test.X))
    assert head.score(data.test.X, data.test.y.astype(dtype)) == plain.score(*data.test)


@pytest.mark.parametrize("name", HEADS)
def test_half_precision_is_read_as_the_numbers_it_holds(name):
    half = problem().cast(np.float16)
    single = half.cast(np.float32)
    found, expected = (fitted(name, data, None) for data in (half, single))
    assert found is not None
    assert expected is not None
    assert np.array_equal(found.scores(half.test.X), expected.scores(single.test.X))


@pytest.mark.parametrize("name", CLOSED)
@few
@given(shots=counts, seed=seeds)
def test_the_order_of_the_shots_changes_nothing(name, shots, seed):
    data = problem(seed, counts=shots, n_test=30)
    order = np.random.default_rng(seed).permutation(len(data.y))
    here, there = fitted(name, data, range(6)), fitted(name, reordered(data, order), range(6))
    assert (here is None) == (there is None)
    if here is None or there is None:
        return
    assert near(there.scores(data.test.X), here.scores(data.test.X))
    assert there.predict(data.test.X).tolist() == here.predict(data.test.X).tolist()


@pytest.mark.parametrize("name", HEADS)
@few
@given(seed=seeds)
def test_the_order_of_the_queries_orders_the_answers(name, seed):
    data = problem(seed)
    head = fitted(name, data, None)
    assert head is not None
    order = np.random.default_rng(seed).permutation(len(data.test.y))
    assert near(head.scores(data.test.X[order]), head.scores(data.test.X)[order])
    assert head.predict(data.test.X[order]).tolist() == head.predict(data.test.X)[order].tolist()


@pytest.mark.parametrize("name", CLOSED)
@few
@given(seed=seeds)
def test_the_order_of_further_evidence_changes_nothing(name, seed):
    data, rng = problem(seed), np.random.default_rng(seed)
    pool, validation, test = (
        Labelled(pair.X[order], pair.y[order])
        for pair in (data.pool, data.validation, data.test)
        for order in [rng.permutation(len(pair.y))]
    )
    head = made(name)
    evidence = data.evidence(head.info.sees)
    turned = Problem(data.X, data.y, data.text, pool, validation, test).evidence(head.info.sees)
    if "few_shot_validation" in evidence:
        turned["few_shot_validation"] = evidence["few_shot_validation"]
    here, there = head.fit(**evidence), made(name).fit(**turned)
    assert near(there.scores(data.test.X), here.scores(data.test.X))
