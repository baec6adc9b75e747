"""One head from several encoders of the same pictures, each with text: the mean of their logits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike

from kshot.errors import InputError, unknown
from kshot.methods.base import Classifier
from kshot.methods.gauss_probe import GaussProbe
from kshot.types import Array


class SeveralEncoders:
    """A Gauss-probe for every encoder, with its own features, text and constants; their logits count alike.

    Weights learnt on the shots add nothing to this. Every encoder needs text.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> text = {"a": np.eye(3, 8), "b": np.eye(3, 5)}
    >>> y = np.repeat(np.arange(3), 4)
    >>> X = {name: T[y] + 0.3 * rng.normal(size=(12, T.shape[1])) for name, T in text.items()}
    >>> SeveralEncoders().fit(X, y, text=text).predict(X).tolist() == y.tolist()
    True
    """

    heads_: dict[str, Classifier]

    def fit(
        self,
        X: Mapping[str, ArrayLike],
        y: ArrayLike,
        *,
        text: Mapping[str, ArrayLike],
        classes: Sequence[Any] | None = None,
        constants: Mapping[str, Mapping[str, float]] | None = None,
    ) -> "SeveralEncoders":
        """Fit on the features, texts and constants of every encoder by its name; the rows are the same pictures."""
        if not X or X.keys() != text.keys():
            raise InputError(
                f"features are of {', '.join(X) or 'no encoder'}, text is of {', '.join(text) or 'none'}. Give both of "
                "every encoder; one without text cannot join."
            )
        self.heads_ = {
            name: GaussProbe().fit(rows, y, text=text[name], classes=classes, constants=(constants or {}).get(name))
            for name, rows in X.items()
        }
        return self

    def scores(self, X: Mapping[str, ArrayLike]) -> Float[Array, "n C"]:
        """The mean of the heads' logits."""
        for name in self.heads_.keys() - X.keys():
            raise InputError(f"no features of {name} are given, which this head was fitted with.")
        for name in X.keys() - self.heads_.keys():
            raise InputError(unknown("encoder", name, list(self.heads_), "The head was fitted with these."))
        return np.mean([head.scores(X[name]) for name, head in self.heads_.items()], axis=0)

    def predict_proba(self, X: Mapping[str, ArrayLike]) -> Float[Array, "n C"]:
        """Softmax of the scores."""
        from scipy.special import softmax

        return softmax(self.scores(X), axis=1)

    def predict(self, X: Mapping[str, ArrayLike]) -> Shaped[Array, " n"]:
        return next(iter(self.heads_.values())).classes_[self.scores(X).argmax(axis=1)]
