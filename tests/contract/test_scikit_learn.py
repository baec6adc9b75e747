"""scikit-learn's own estimator checks over every public head, and heads inside its meta-estimators.

The checks call `fit(X, y)`. Every head is wrapped in a subclass that takes the class means as text, and the same rows
as any further evidence it declares; everything else is the head itself, with few epochs and small grids to be quick.
"""

import inspect
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import kshot
from kshot.errors import InputError
from kshot.methods import fold_gda
from kshot.methods.base import Classifier
from problems import HEADS, problem, quick

# Tuned by folds it is fitted seven hundred times where the checks have a hundred rows per class.
FEWER_FITS = {"LogisticProbe": {"tune": "test"}}

NO_DIRECTION = "a row of zeros has no direction and is refused; the check's whole numbers contain one"
LOOKS_AT_NO_PICTURE = "it looks at no picture, so it does not notice what is wrong with one"
EXPECTED = {name: {"check_estimators_dtypes": NO_DIRECTION} for name in HEADS}
ONLY_ITS_QUERIES = "it answers only for the queries that it was fitted with"
EXPECTED["TransCLIP"] |= dict.fromkeys(
    ("check_classifiers_one_label", "check_decision_proba_consistency"), ONLY_ITS_QUERIES
)
PICTURES_ARE_BAD = ("dtype_object", "estimator_sparse_tag", "classifiers_train", "estimators_nan_inf")
EXPECTED["ZeroShot"] |= {f"check_{name}": LOOKS_AT_NO_PICTURE for name in PICTURES_ARE_BAD}
EXPECTED["ZeroShot"]["check_estimators_empty_data_messages"] = LOOKS_AT_NO_PICTURE


def text_for(X, y) -> np.ndarray:
    """Class means; where X and y are no classification problem, rows that let the head itself find that out."""
    labels = np.unique(np.asarray(y).ravel()) if y is not None else np.arange(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rows = np.asarray(X, float)
            means = np.stack([rows[np.asarray(y).ravel() == label].mean(axis=0) for label in labels])
        except (TypeError, ValueError, IndexError):
            means = np.array(np.nan)
    if means.size and np.isfinite(means).all():
        return means
    width = np.shape(X)[1] if len(np.shape(X)) == 2 else 1
    return np.ones((max(len(labels), 1), max(width, 1)))


def classes_of(y):
    """Names in the order of `text_for`; None where y is nothing that has names."""
    labels = np.asarray(y).ravel()
    return sorted(set(labels.tolist())) if all(isinstance(x, str) for x in labels.tolist()) else None


def wrapped(name: str) -> Classifier:
    head = HEADS[name]

    class WithText(head):
        # Without the type checks of the test run: scikit-learn hands methods what they do not promise to take.
        __init__, predict = inspect.unwrap(head.__init__), inspect.unwrap(head.predict)
        predict_with_scores, _winners = (inspect.unwrap(head.predict_with_scores), inspect.unwrap(head._winners))
        scores, _deciding = inspect.unwrap(head.scores), inspect.unwrap(head._deciding)

        def fit(self, X, y=None):
            made_up = dict.fromkeys(self.info.sees - {"text", "support", "queries"}, (X, y))
            if "queries" in self.info.sees:
                made_up["queries"] = X
            if "text" in self.info.sees:
                made_up["text"] = text_for(X, y)
                made_up["classes"] = classes_of(y)
            return inspect.unwrap(head.fit)(self, X, y, **made_up)

    # The checks pickle what they fit, so the class must be found by its name.
    WithText.__name__ = WithText.__qualname__ = f"{name}WithText"
    globals()[WithText.__name__] = WithText
    return WithText(**quick(head), **FEWER_FITS.get(name, {}))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit:UserWarning")
def test_estimator_checks(name, monkeypatch):
    # The checks have a hundred rows per class and so as many folds, each searched by the whole grid.
    for grid in ("GAMMAS", "KAPPAS"):
        monkeypatch.setattr(fold_gda, grid, getattr(fold_gda, grid)[:1])
    results = check_estimator(wrapped(name), expected_failed_checks=EXPECTED[name], on_skip=None, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == EXPECTED[name].keys()
    assert sum(one["status"] == "passed" for one in results) >= 45


NAMES = ["bee", "ant", "cat", "dog", "eel", "fox"]


@pytest.fixture
def named():
    data = problem(shots=6)
    return data, np.array(NAMES)[data.y]


def test_text_reaches_a_head_inside_cross_validation(named):
    data, y = named
    found = cross_val_score(kshot.GDA(), data.X, y, params={"text": data.text, "classes": NAMES}, cv=3)
    rows = np.arange(len(y)) % 2 == 0
    by_hand = kshot.GDA().fit(data.X[rows], y[rows], text=data.text, classes=NAMES).score(data.X[~rows], y[~rows])
    assert len(found) == 3
    assert min(*found, by_hand) > 0.5


def test_metadata_routing_hands_text_on(named):
    data, y = named
    with sklearn.config_context(enable_metadata_routing=True):
        text = dict(zip(NAMES, data.text, strict=True))
        plain = make_pipeline(FunctionTransformer(), kshot.LOOBlend()).fit(data.X, y, text=text)
        assert (plain.predict(data.X) == kshot.LOOBlend().fit(data.X, y, text=text).predict(data.X)).all()
        renamed = kshot.LOOBlend().set_fit_request(text="prompts")
        search = GridSearchCV(renamed, {"k_correction": [False, True]}, cv=2)
        assert search.fit(data.X, y, prompts=text).best_score_ > 0.5
        refused = make_pipeline(kshot.LOOBlend().set_fit_request(text=None))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            refused.fit(data.X, y, text=data.text)
    with pytest.raises(InputError, match="fit takes no 'prompt'"):
        kshot.NCM().set_fit_request(prompt=True)


def test_two_classes_score_as_scikit_learn_has_it():
    data = problem(classes=2, noise=2.0)
    head = kshot.CLAP(epochs=5).fit(data.X, data.y, text=data.text)
    scores = head.scores(data.test.X)
    assert np.allclose(head.decision_function(data.test.X), scores[:, 1] - scores[:, 0])
    named = kshot.CLAP(epochs=5).fit(data.X, data.y == 1, text=data.text)
    auc = sklearn.metrics.get_scorer("roc_auc")(named, data.test.X, data.test.y == 1)
    pairs = np.subtract.outer(*(head.decision_function(data.test.X)[data.test.y == c] for c in (1, 0)))
    assert auc == pytest.approx((pairs > 0).mean())


@pytest.mark.parametrize("name", HEADS)
def test_metadata_requests_of_every_head_are_those_of_scikit_learn(name):
    """What is asked by default, and what a pipeline and a search hand to `fit` and `score`."""
    from sklearn.utils.metadata_routing import get_routing_for_object

    head = wrapped(name)
    with sklearn.config_context(enable_metadata_routing=True):
        request = get_routing_for_object(HEADS[name]())
        assert request.consumes("fit", ["text", "sample_weight"]) == {"text"}
        assert request.consumes("score", ["sample_weight"]) == set()
        data = problem(shots=4)
        weights = np.linspace(0, 1, len(data.y))
        plain = make_pipeline(FunctionTransformer(), head).fit(data.X, data.y)
        assert plain.score(data.X, data.y) == plain[-1].score(data.X, data.y)
        with pytest.raises(ValueError, match="sample_weight"):
            plain.score(data.X, data.y, sample_weight=weights)
        asked = wrapped(name).set_score_request(sample_weight=True).fit(data.X, data.y)
        assert get_routing_for_object(asked).consumes("score", ["sample_weight"]) == {"sample_weight"}
        weighed = make_pipeline(FunctionTransformer(), asked).score(data.X, data.y, sample_weight=weights)
        right = asked.predict(data.X) == data.y
        assert weighed == pytest.approx(weights[right].sum() / weights.sum())


def test_a_search_scores_with_routing_on():
    data = problem(shots=6)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(kshot.GDA(), {"alpha": [1.0, 1e6]}, cv=2)
        search.fit(data.X, data.y, text=data.text)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
