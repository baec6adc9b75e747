"""What a method must refuse, with an error that says what was wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kshot.errors import EvidenceError, InputError, KshotError, UndefinedError
from kshot.methods.base import Classifier
from kshot.testing.answers import Make, fitted, scores
from kshot.testing.problems import problem
from kshot.types import FREE_EVIDENCE


def refused(error: type[KshotError], says: str, call: Callable[[], Any]) -> None:
    """Assert that the call raises this error with these words in it."""
    raised = _raised(error, call)
    assert raised is not None, f"nothing was raised; expected {error.__name__} with '{says}'"
    assert says in str(raised), f"the error should say '{says}'; it says: {raised}"


def _raised(error: type[Exception], call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except error as found:
        return found
    return None


def a_head_that_is_not_fitted(make: Make) -> None:
    from sklearn.exceptions import NotFittedError

    for ask in ("predict", "scores", "decision_function", "predict_proba"):
        raised = _raised(NotFittedError, lambda ask=ask: getattr(make(), ask)(problem().test.X))
        assert isinstance(raised, InputError), f"{ask} before fit gives {raised!r}, not a NotFittedError of kshot"


def a_parameter_that_does_not_exist(make: Make) -> None:
    refused(InputError, "no parameter", lambda: make().set_params(no_such_thing=1))


def evidence_that_is_missing(make: Make) -> None:
    sees = make().info.sees
    for missing in sees:
        refused(EvidenceError, missing, lambda rest=sees - {missing}: make().fit(**problem().evidence(rest)))


def too_few_shots(make: Make) -> None:
    data, least = problem(shots=1), make().info.min_shots
    if least > 1:
        refused(UndefinedError, f"needs {least} shots", lambda: fitted(make, data))
    else:
        assert np.isfinite(scores(make, data)).all(), "scores are not finite at one shot per class"


def views_of_the_wrong_kind(make: Make) -> None:
    data = problem()
    given = data.evidence(make().info.sees)
    views = np.stack([data.X, data.X])
    if make().info.views:
        says, views = "views must have shape", views[:, 1:]
    else:
        says = "does not use augmented views"
    refused(InputError, says, lambda: make().fit(**given, views=views))


def rows_that_are_no_features(make: Make) -> None:
    data = problem()
    which = "X" if "support" in make().info.sees else "text"
    head = fitted(make, data)
    for value in (np.nan, np.inf, 0.0):
        rows = getattr(data, which).copy()
        rows[3] = value
        broken = replace(data, **{which: rows})
        refused(InputError, "1 row(s): 3", lambda broken=broken: fitted(make, broken))
        refused(InputError, "the query", lambda rows=rows: head.predict(rows))


def wrong_dimensions(make: Make) -> None:
    data = problem()
    refused(InputError, "dimension", lambda: fitted(make, data).predict(data.test.X[:, :-1]))
    if make().info.sees >= {"text", "support"}:
        refused(InputError, "dimension", lambda: fitted(make, replace(data, text=data.text[:, :-1])))


def labels_that_name_no_class(make: Make) -> None:
    data = problem()
    sees = make().info.sees
    if "support" in sees:
        gone = replace(data, X=data.X[data.y != 2], y=data.y[data.y != 2])
        if sees <= {"support", "queries"}:
            labels = fitted(make, gone).classes_.tolist()
            assert labels == [0, 1, 3, 4, 5], f"without text the classes are {labels}, not the shots' labels"
        elif "text" not in sees:
            refused(InputError, "none of the classes", lambda: fitted(make, gone))
        elif make()._min_shots():
            refused(InputError, "no shots", lambda: fitted(make, gone))
        else:
            assert np.isfinite(scores(make, gone)).all(), "scores are not finite where a class has no shots"
        refused(InputError, "integers", lambda: fitted(make, replace(data, y=data.y + 0.5)))
    if sees >= {"text", "support"}:
        more = np.where(np.arange(len(data.y)) == 0, 6, data.y)
        refused(InputError, "span", lambda: fitted(make, replace(data, y=more)))
    refused(InputError, "none of the classes", lambda: fitted(make, data).score(data.test.X, data.test.y + 6))


def a_class_without_shots(make: Make) -> None:
    """With all classes named, a head is fitted, because text stands in, or refused as undefined.

    A method that sees text and shots alone scores the other classes as if the empty ones had not been named.
    """
    method = make()
    sees, least = method.info.sees, method._min_shots()
    if "support" not in sees:
        return
    data = problem(counts=[4, 5, 0, 4, 0, 3])

    def fit_named() -> Classifier:
        return make().fit(**data.evidence(sees), classes=range(6))

    if least and ("text" not in sees or (least > 1 and sees != FREE_EVIDENCE)):
        refused(UndefinedError, "2 of 6 classes have no shots", fit_named)
        return
    head = fit_named()
    assert np.isfinite(head.scores(data.test.X)).all(), "scores are not finite where classes have no shots"
    accuracy = head.score(*data.test)
    assert accuracy > 1 / 3, f"accuracy is {accuracy:.2f}, not twice chance, where two of six classes have no shots"
    if least and sees == FREE_EVIDENCE:
        seen = np.unique(data.y)
        alone = make().fit(data.X, np.searchsorted(seen, data.y), text=data.text[seen])
        expected, found = (h.scores(data.test.X) for h in (alone, head.among(seen)))
        near = np.allclose(found, expected, atol=1e-9 * np.abs(expected).max())
        assert near, "classes without shots change the scores of the others"


CHECKS = (
    a_head_that_is_not_fitted,
    a_parameter_that_does_not_exist,
    evidence_that_is_missing,
    too_few_shots,
    views_of_the_wrong_kind,
    rows_that_are_no_features,
    wrong_dimensions,
    labels_that_name_no_class,
    a_class_without_shots,
)
