"""Labels of every kind, and parameters that are refused."""

import numpy as np
import pytest

from kshot import CLAP, GDA, LPP, NCM, SSText, TipAdapter, load_head, save_head
from kshot.errors import InputError
from kshot.methods import registry
from problems import problem

NAMES = ["wolf", "ant", "newt", "bee", "cod", "asp"]


@pytest.mark.parametrize("labels", [(0, 5), (3, 5), (-2, 0), (0, 1), (1, 0)])
def test_without_text_every_different_number_is_a_class(labels):
    data = problem(classes=2)
    head = NCM().fit(data.X, np.array(labels)[data.y])
    assert head.classes_.tolist() == sorted(labels)
    expected = NCM().fit(data.X, data.y).predict(data.test.X)
    assert head.predict(data.test.X).tolist() == [labels[row] for row in expected]


def test_with_text_a_number_that_is_missing_is_a_class_without_shots():
    data = problem(counts=[4, 4, 0, 4, 4, 4])
    assert SSText().fit(data.X, data.y, text=data.text).classes_.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("classes", [[], [0, 0]])
def test_no_list_of_classes(classes):
    data = problem()
    with pytest.raises(InputError, match="list of different labels"):
        GDA().fit(data.X, data.y, text=data.text).among(classes)


def test_names_need_an_order_of_the_rows_of_text():
    """Text in the user's order, labels as names: nothing tells kshot which row is whose."""
    data = problem()
    y = [NAMES[c] for c in data.y]
    with pytest.raises(InputError, match=r"labels are names .*classes=\['wolf', 'ant', …\]"):
        GDA().fit(data.X, y, text=data.text)
    NCM().fit(data.X, y, text=data.text)  # reads no text
    expected = [NAMES[c] for c in GDA().fit(data.X, data.y, text=data.text).predict(data.test.X)]
    order = np.argsort(NAMES)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.text, index=NAMES)
    given = (
        {"text": data.text, "classes": NAMES},
        {"text": data.text[order], "classes": sorted(NAMES)},
        {"text": dict(zip(NAMES, data.text, strict=True))},
        {"text": {NAMES[c]: data.text[c].tolist() for c in order}, "classes": NAMES},
        {"text": frame},
        {"text": frame.sort_index()},
    )
    for how in given:
        assert GDA().fit(data.X, y, **how).predict(data.test.X).tolist() == expected
    plain = GDA().fit(data.X, data.y, text=frame.reset_index(drop=True)).predict(data.test.X)
    assert [NAMES[c] for c in plain] == expected


def test_text_whose_names_are_others_is_refused():
    data = problem()
    rows, y = dict(zip(NAMES, data.text, strict=True)), [NAMES[c] for c in data.y]
    for text, classes, message in (
        (rows, NAMES[1:], "name different classes, the first 'wolf'"),
        (rows, ["wasp", *NAMES[1:]], "name different classes, the first 'wasp'"),
        (rows | {"bee": rows["bee"][1:]}, None, "rows of text have the shapes"),
        ({name.upper(): row for name, row in rows.items()}, None, "6 labels|labels of the support are none of"),
    ):
        with pytest.raises(InputError, match=message):
            GDA().fit(data.X, y, text=text, classes=classes)


@pytest.mark.parametrize("classes", [NAMES, [10, 20, 30, 40, 50, 60], [3, 1, 0, 2, 5, 4]])
def test_labels_pass_through_a_head_file(tmp_path, classes):
    data = problem()
    head = NCM().fit(data.X, np.array(classes)[data.y], classes=classes)
    save_head(head, tmp_path / "head")
    read = load_head(tmp_path / "head")
    assert read.predict(data.test.X).tolist() == head.predict(data.test.X).tolist()


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([1, 2, 3, 4, 6, 6], None, "5 different ones, but text has 6 rows"),
        (list("abcdee"), None, "labels are names"),
        ([1, 2, 3, 4, 5, 5], None, "1 of 6 classes have no shots .first: class 0"),
        ([0, 1, 2, 3, 4, 4], None, "1 of 6 classes have no shots .first: class 5"),
        (["a", 1, "c", None, "e", 2.5], None, "labels are names"),
        (["a", "b", "c", "d", "e", "x"], list("abcdef"), "are none of the classes, the first of them 'x'"),
        (list("abcdef"), list("abcde"), "classes names 5 classes, but text has 6 rows"),
        (list("abcdef"), list("abcdee"), "different labels"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(y, classes, message):
    data = problem(shots=1)
    labels = np.array(y, dtype=object) if None in y else np.array(y)
    with pytest.raises(InputError, match=message):
        GDA().fit(data.X, labels, text=data.text, classes=classes)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        (CLAP, {"batch_size": 0}, "CLAP: batch_size must be a whole number of at least 1, not 0."),
        (CLAP, {"penalty": "no"}, "CLAP: penalty must be True or False, not 'no'."),
        (CLAP, {"momentum": 1.5}, "CLAP: momentum must be a number from 0 to 1, not 1.5."),
        (CLAP, {"lr": float("nan")}, "CLAP: lr must be a number of at least 0, not nan."),
        (CLAP, {"epochs": 2.5}, "CLAP: epochs must be a whole number of at least 1, not 2.5."),
        (CLAP, {"logit_scale": True}, "CLAP: logit_scale must be a number above 0 or None, not True."),
        (GDA, {"alpha": "foo"}, "GDA: alpha must be a number of at least 0 or 'loo' or 'val', not 'foo'."),
        (TipAdapter, {"tune": "val"}, "TipAdapter: tune must be 'loo' or 'test' or 'fixed', not 'val'."),
        (LPP, {"bias_init": ["a"]}, "LPP: bias_init must be a list of which each is a number or None, not"),
    ],
)
def test_parameters_are_checked_before_a_fit_and_by_the_registry(method, params, message):
    data = problem()
    with pytest.raises(InputError) as raised:
        method().set_params(**params).fit(data.X, data.y, text=data.text)
    assert str(raised.value).startswith(message)
    name = registry.name_of(method())
    with pytest.raises(InputError) as raised:
        registry.create(name, **params)
    assert str(raised.value).startswith(message)


def test_numbers_of_numpy_are_numbers():
    method = registry.create("clap", seed=np.int64(1), lr=np.float32(0.5), penalty=np.bool_(False))
    assert method.info.key == "zs_lp"


def test_the_key_tells_the_weight(tmp_path):
    data = problem()
    head = GDA(alpha=0.5).fit(data.X, data.y, text=data.text)
    assert (head.info.key, GDA().info.key) == ("gda_alpha0.5", "gda_alpha1")
    save_head(head, tmp_path / "head")
    assert load_head(tmp_path / "head").get_params() == head.get_params()
