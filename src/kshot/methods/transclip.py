"""TransCLIP, few-shot: all queries are classified together (Zanella et al., 2024)."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError, UndefinedError
from kshot.methods.base import Classifier, log_probabilities
from kshot.methods.evidence import Task
from kshot.methods.parameters import NotNegative, Positive
from kshot.solvers.rows import row_blocks
from kshot.solvers.transduction import NEIGHBOURS, transduce
from kshot.types import Array, Choice, Evidence, Labelled, MethodInfo

PAPER = "Zanella et al., Boosting vision-language models with transduction, NeurIPS 2024"
GAMMAS = (0.002, 0.01, 0.02, 0.2)
# One query may come back rescaled; two pictures are further apart than this.
SAME = 1e-3


class TransCLIP(Classifier):
    """Class probabilities of the queries given to `fit`, from text, shots and each query's neighbours among them.

    Transductive: a query's prediction depends on the other queries, and there is no head for new pictures.
    `gamma` weighs the shots in the class means; None is 0.002 below four shots and 0.02 from there on. As coded
    officially, shots and queries are stacked in two different orders, so that the order of the queries matters;
    `aligned=True` repairs that, and with it their order does not matter.

    Parameters
    ----------
    aligned : bool
        Repair the order in which shots and queries are stacked.
    gamma : float or None
        Weight of the shots in the class means.
    text_weight : float
        How strongly predictions are held to zero-shot's.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    queries_: Float[Array, "Q d"]
    assignments_: Float[Array, "Q C"]

    def __init__(
        self,
        aligned: bool = False,
        gamma: NotNegative | None = None,
        text_weight: NotNegative = 0.5,
        logit_scale: Positive | None = None,
    ):
        self.aligned = aligned
        self.gamma = gamma
        self.text_weight = text_weight
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        key, title = ("transclip_aligned", "TransCLIP (rows aligned)") if self.aligned else ("transclip", "TransCLIP")
        sees: frozenset[Evidence] = frozenset({"text", "support", "queries"})
        return MethodInfo(
            key,
            title,
            sees,
            1,
            PAPER,
            linear=False,
            closed_form=self.aligned,
            rotation_free=False,
            constants=frozenset({"logit_scale"}),
        )

    def _fit(self, task: Task) -> None:
        assert task.queries is not None
        if len(task.queries) <= NEIGHBOURS:
            raise UndefinedError(
                f"{self.info.key} looks for {NEIGHBOURS} neighbours of every query and needs {NEIGHBOURS + 1} queries; "
                f"there are {len(task.queries)} (n_samples={len(task.queries)})."
            )
        few = len(task.y) < 4 * task.n_classes
        gamma = (0.002 if few else 0.02) if self.gamma is None else self.gamma
        self.queries_ = task.queries
        self.assignments_ = self._transduce(task, gamma)
        zero_shot = (task.queries @ task.text.T).argmax(axis=1)
        moved = float(np.mean(self.assignments_.argmax(axis=1) != zero_shot))
        self.selected_ = {"gamma": Choice(gamma, "fixed"), "moved": Choice(moved, "queries")}

    def _transduce(self, task: Task, gamma: float) -> Float[Array, "Q C"]:
        assert task.queries is not None
        return transduce(
            task.queries,
            task.X,
            task.y,
            task.text,
            gamma=gamma,
            text_weight=self.text_weight,
            scale=task.logit_scale,
            aligned=self.aligned,
        ).z

    def knob_name(self) -> str:
        return "gamma"

    def knob_grid(self) -> Sequence[float]:
        return GAMMAS

    def knob_at(self, value: float) -> "TransCLIP":
        return TransCLIP(**{**self.get_params(), "gamma": value})

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return np.array([np.mean(z.argmax(axis=1) == queries.y) for z in self.knob_scores(task, queries.X)])

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        """Labelled pictures that are no queries take their nearest query's assignment, as in the official code."""
        assert task.queries is not None
        place = nearest_query(X, task.queries)
        for gamma in GAMMAS:
            z = self._transduce(task, gamma)[place]
            yield log_probabilities(z)

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

    def _expects(self) -> tuple[np.dtype, int]:
        return self._fitted_on("queries_")


def nearest_query(X: Float[Array, "n d"], queries: Float[Array, "Q d"]) -> Int[Array, " n"]:
    place = np.empty(len(X), np.int64)
    for here in row_blocks(len(X)):
        place[here] = (X[here] @ queries.T).argmax(axis=1)
    return place
