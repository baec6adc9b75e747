"""TransCLIP, few-shot: all queries are classified together (Zanella et al., 2024)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError, UndefinedError
from kshot.methods.base import Classifier, info_by_parameters, log_probabilities
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale, NotNegative
from kshot.solvers.rows import accuracy, row_blocks
from kshot.solvers.transduction import NEIGHBOURS, transduce
from kshot.types import Array, Labelled, MethodInfo

INFO = MethodInfo(
    key="transclip",
    title="TransCLIP",
    sees=frozenset({"text", "support", "queries"}),
    paper="Zanella et al., Boosting vision-language models with transduction, NeurIPS 2024",
    linear=False,
    closed_form=False,
    rotation_free=False,
)
ALIGNED_INFO = replace(INFO, key="transclip_aligned", title="TransCLIP (rows aligned)", closed_form=True)
GAMMAS = (0.002, 0.01, 0.02, 0.2)
# One query may come back rescaled; two pictures are further apart than this.
SAME = 1e-3


class Together(Classifier):
    """A head that has class probabilities of the queries it was fitted with, and of no other pictures."""

    _like_data = "queries_"

    def _check(self, queries: Float[Array, "Q d"]) -> None:
        if len(queries) <= NEIGHBOURS:
            raise UndefinedError(
                f"{self.info.key} looks for {NEIGHBOURS} neighbours of every query and needs {NEIGHBOURS + 1} queries; "
                f"there are {len(queries)} (n_samples={len(queries)})."
            )

    def _remember(self, queries: Float[Array, "Q d"], assignments: Float[Array, "Q C"]) -> None:
        self.queries_, self.assignments_ = queries, assignments

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        if X.shape == self.queries_.shape and np.abs(X - self.queries_).max() < SAME:
            return self.assignments_.copy()
        place = nearest_query(X, self.queries_)
        strange = np.flatnonzero(np.abs(X - self.queries_[place]).max(axis=1) >= SAME)
        if len(strange):
            raise InputError(
                f"{len(strange)} of the {len(X)} pictures are not among the {len(self.queries_)} queries that "
                f"{self.info.key} was fitted with (first: row {strange[0]}), and it has no answer for others. "
                "Fit again with queries=X."
            )
        return self.assignments_[place]

    def _logits(self, scores: Float[Array, "n C"]) -> Float[Array, "n C"]:
        return log_probabilities(scores)


class TransCLIP(Together):
    """Class probabilities of the queries given to `fit`, from text, shots and each query's neighbours among them.

    Transductive: a query's prediction depends on the other queries, and there is no head for new pictures. As coded
    officially, shots and queries are stacked in two different orders, so that the order of the queries matters;
    `aligned=True` repairs that, and with it their order does not matter.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.TransCLIP().fit(data.X, data.y, text=data.text, queries=data.test.X)
    >>> print(f"{head.score(*data.test):.2f}")
    0.67
    """

    aligned: Annotated[bool, "Repair the order in which shots and queries are stacked."] = False
    gamma: Annotated[
        NotNegative | None, "Weight of the shots in the class means; None is 0.002 below four shots and 0.02 above."
    ] = None
    text_weight: Annotated[NotNegative, "Weight of the zero-shot predictions."] = 0.5
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return ALIGNED_INFO if self.aligned else INFO

    def _fit(self, task: Task) -> None:
        gamma = shot_weight(task) if self.gamma is None else self.gamma
        self._check(task.queries)
        self._remember(task.queries, self._transduce(task, gamma))
        zero_shot = (task.queries @ task.text.T).argmax(axis=1)
        moved = float(np.mean(self.assignments_.argmax(axis=1) != zero_shot))
        self._select("fixed", gamma=gamma)
        self._select("queries", moved=moved)

    def _transduce(self, task: Task, gamma: float) -> Float[Array, "Q C"]:
        from scipy.special import log_softmax

        log_text = log_softmax(task.logit_scale * (task.queries @ task.text.T), axis=1)
        settings = {"gamma": gamma, "prior_weight": self.text_weight, "aligned": self.aligned}
        return transduce(task.queries, task.X, task.y, log_text, **settings).z

    def knob_name(self) -> str:
        return "gamma"

    def knob_grid(self) -> Sequence[float]:
        return GAMMAS

    def knob_at(self, value: float) -> "TransCLIP":
        return self.with_params(gamma=value)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return np.array([accuracy(scores, queries.y) for scores in self.knob_scores(task, queries.X)])

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        """Give pictures that are no queries the assignment of the nearest query, as the official code does."""
        place = nearest_query(X, task.queries)
        for gamma in GAMMAS:
            z = self._transduce(task, gamma)[place]
            yield log_probabilities(z)


def shot_weight(task: Task) -> float:
    """Weight of the shots in the class means, by their number."""
    return 0.002 if len(task.y) < 4 * task.n_classes else 0.02


def nearest_query(X: Float[Array, "n d"], queries: Float[Array, "Q d"]) -> Int[Array, " n"]:
    place = np.empty(len(X), np.int64)
    for here in row_blocks(len(X)):
        place[here] = (X[here] @ queries.T).argmax(axis=1)
    return place
