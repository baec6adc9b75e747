"""Files of shots that somebody else drew, against a pool of three classes with four pictures each."""

import json
import re

import numpy as np
import pytest

from kshot.bench.study import parsed_supports
from kshot.data.store import Store
from kshot.data.stratum import load_stratum, pool_rows
from kshot.data.supports import read_supports
from kshot.errors import StudyError

CLASSES = ["cat", "dog", "fox"]
# Row r is a picture of class r % 3; of the second backbone the rows come backwards.
IDS = [f"p{row:02d}" for row in range(12)]
DRAWS = [("pets", "mine", 2, 7)]


@pytest.fixture
def store(tmp_path):
    found, rng = Store(tmp_path / "features"), np.random.default_rng(0)
    for backbone, step in (("mine", 1), ("other", -1)):
        for part, ids in (("pool", IDS), ("test", ["t0", "t1", "t2"])):
            y = np.arange(len(ids)) % 3
            X = rng.normal(size=(len(ids), 4)).astype(np.float32)
            found.write_images("pets", backbone, part, X, y[::step], ids[::step], CLASSES)
    return found


def read(tmp_path, store, entry, draws=DRAWS):
    (tmp_path / "s.json").write_text(json.dumps({"pets": {"2": {"7": entry}}}))
    return parsed_supports(read_supports(tmp_path / "s.json", draws, store))


@pytest.mark.parametrize(
    "entry",
    [
        ["p11", "p00", "p04", "p08", "p03", "p07"],
        [11, 0, 4, 8, 3, 7],
        {"fox": ["p11", "p08"], "cat": ["p00", "p03"], "1": [4, 7]},
    ],
)
def test_ids_row_numbers_and_tables_by_class_are_read_class_by_class_in_their_order(tmp_path, store, entry):
    found = read(tmp_path, store, entry, [*DRAWS, ("pets", "other", 2, 7)])
    assert found == {"pets": {(2, 7): ("p00", "p03", "p04", "p07", "p11", "p08")}}
    stratum = load_stratum(store, "pets", "other", supports=found["pets"])
    assert [stratum.pool_ids[row] for row in stratum._drawn(2, 7, "balanced")] == list(found["pets"][2, 7])
    # Another seed is drawn as always, and validation shots are none of those given.
    assert set(stratum._drawn(2, 8, "balanced")) == set(load_stratum(store, "pets", "other")._drawn(2, 8, "balanced"))
    assert sorted({stratum.pool_ids[row] for row in stratum._next_drawn(2, 7, "balanced")}) == sorted(
        set(IDS) - set(found["pets"][2, 7])
    )


def test_the_text_is_the_same_however_it_was_sorted(tmp_path, store):
    """The header writes keys in the order of their letters, and the same shots must be known again."""
    (tmp_path / "s.json").write_text(json.dumps({"pets": {"2": {"7": list(range(6)), "10": list(range(6))}}}))
    text = read_supports(tmp_path / "s.json", [("pets", "mine", 2, 7), ("pets", "mine", 2, 10)], store)
    assert text == json.dumps(json.loads(text), sort_keys=True)


def test_no_file_gives_no_shots():
    assert parsed_supports("") == {}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ([0, 3, 1, 4, 2, 12], "pets, 2 shots, seed 7, mine: there is no row 12; the part has 12 pictures."),
        ([0, 3, 1, 4, 2, -1], "no row -1"),
        ([0, 3, 1, 4, 2, 5.0], "no row 5.0"),
        ([0, 3, 1, 4, 2, "t0"], "no picture t0"),
        ([0, 3, 1, 4, 2], "class 'fox' has 1 shots instead of 2."),
        ([0, 3, 6, 1, 4, 7], "class 'cat' has 3 shots instead of 2, and so have 2 other classes a wrong number."),
        ([0, 3, 1, 4, 2, "p02"], "a picture is there twice"),
        ({"cat": [0, 3], "dog": [1, 4], "2": [2, 6]}, "6 is a picture of class 'cat', not of 'fox'."),
        ({"cat": [0, 3], "dog": [1, 4], "3": [2, 5]}, "'3' is neither a class name nor a number below 3."),
        ({"cat": [0, 3], "dog": [1, 4], "-1": [2, 5]}, "'-1' is neither"),
        ({"cat": 3}, "give a list of ids"),
        ("p00", "give a list of ids or row numbers, or {class: list}, not p00."),
    ],
)
def test_wrong_shots_are_refused(tmp_path, store, entry, said):
    with pytest.raises(StudyError, match=re.escape(said)):
        read(tmp_path, store, entry)


@pytest.mark.parametrize(
    ("draw", "lacking"),
    [(("birds", "mine", 2, 7), "'birds' among pets"), (("pets", "mine", 4, 7), "'4' among 2"),
     (("pets", "mine", 2, 8), "no '8' among 7")],
)  # fmt: skip
def test_draws_that_the_file_lacks_are_named(tmp_path, store, draw, lacking, monkeypatch):
    monkeypatch.setattr("kshot.data.supports.pool_rows", lambda store, dataset, backbone: None)
    with pytest.raises(StudyError, match=f"K = {draw[2]} and seed {draw[3]}: .*{lacking}"):
        read(tmp_path, store, [], [draw])
    (tmp_path / "s.json").write_text("[1]")
    with pytest.raises(StudyError, match="'pets' among list"):
        read_supports(tmp_path / "s.json", DRAWS, store)
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(StudyError, match="cannot be read as JSON"):
        read_supports(tmp_path / "s.json", DRAWS, store)


def test_a_row_that_the_split_tests_on_is_refused(tmp_path):
    whole, y = Store(tmp_path / "whole"), np.repeat(np.arange(3), 8)
    X = np.random.default_rng(1).normal(size=(24, 4)).astype(np.float32)
    whole.write_images("pets", "mine", "all", X, y, [f"a{n}" for n in range(24)], CLASSES)
    pool = pool_rows(whole, "pets", "mine")
    assert pool.inside.sum() == 15
    assert {pool.ids[row] for row in np.flatnonzero(~pool.inside)} == set(load_stratum(whole, "pets", "mine").test_ids)
    rows = [int(row) for c in range(3) for row in np.flatnonzero(pool.inside & (y == c))[:2]]
    assert len(read(tmp_path, whole, rows)["pets"][2, 7]) == 6
    tested = int(np.flatnonzero(~pool.inside)[0])
    with pytest.raises(StudyError, match=f"{tested} is a test picture, not one of the pool"):
        read(tmp_path, whole, [tested, *rows[1:]])
