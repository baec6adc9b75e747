import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kshot.data.episode import cap_pool, draw_support, self_split, too_thin


def picture_ids(y):
    return [f"img{i:04d}" for i in range(len(y))]


labels = st.lists(st.integers(0, 4), min_size=40, max_size=120).map(np.array)


@given(labels, st.integers(0, 20))
def test_draws_are_nested_in_shots(y, seed):
    ids = picture_ids(y)
    large = draw_support("d", ids, y, 4, seed)
    for shots in (1, 2, 3):
        assert set(draw_support("d", ids, y, shots, seed)) <= set(large)


@given(labels, st.integers(0, 20), st.randoms(use_true_random=False))
def test_draws_depend_on_ids_and_not_on_row_order(y, seed, random):
    ids = picture_ids(y)
    order = list(range(len(y)))
    random.shuffle(order)
    straight = [ids[i] for i in draw_support("d", ids, y, 3, seed)]
    shuffled_ids = [ids[i] for i in order]
    assert [shuffled_ids[i] for i in draw_support("d", shuffled_ids, y[order], 3, seed)] == straight


@given(labels)
def test_each_class_gives_the_shots_it_has(y):
    support = draw_support("d", picture_ids(y), y, 3, 0)
    assert np.array_equal(np.bincount(y[support], minlength=5), np.minimum(np.bincount(y, minlength=5), 3))
    assert np.array_equal(y[support], np.sort(y[support]))


def test_seeds_and_datasets_draw_differently_and_fairly():
    y = np.zeros(50, int)
    ids = picture_ids(y)
    counts = np.zeros(50)
    for seed in range(400):
        counts[draw_support("d", ids, y, 10, seed)] += 1
    assert abs(counts - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)
    assert set(draw_support("d", ids, y, 10, 0)) != set(draw_support("e", ids, y, 10, 0))


def test_removing_a_picture_moves_no_other():
    y = np.zeros(30, int)
    ids = picture_ids(y)
    chosen = {ids[i] for i in draw_support("d", ids, y, 5, 0)}
    left = next(name for name in ids if name not in chosen)
    fewer = [name for name in ids if name != left]
    assert {fewer[i] for i in draw_support("d", fewer, y[:-1], 5, 0)} == chosen


@given(labels)
def test_self_split_takes_68_percent_of_each_class(y):
    pool = self_split("d", picture_ids(y), y)
    for c in np.unique(y):
        size = np.sum(y == c)
        assert np.sum(pool[y == c]) == np.round(0.68 * size)


def test_a_published_self_split():
    """ImageNet's 50 evaluation pictures per class become 34 and 16, as in the study's 16,000 test pictures."""
    y = np.repeat(np.arange(3), 50)
    assert np.sum(~self_split("ImageNet", picture_ids(y), y)) == 3 * 16


def test_thin_pools():
    y = np.repeat(np.arange(2), 10)  # ten per class, as Flowers102: K = 4 stays, K = 8 is dropped
    assert not too_thin(y, 2, 4)
    assert not too_thin(y, 2, 5)
    assert too_thin(y, 2, 6)
    assert too_thin(y, 3, 1)  # a class without pictures


@given(labels, st.integers(1, 30))
def test_a_capped_pool_keeps_so_many_of_each_class(y, most):
    kept = cap_pool("d", picture_ids(y), y, most)
    assert np.array_equal(np.bincount(y[kept], minlength=5), np.minimum(np.bincount(y, minlength=5), most))
