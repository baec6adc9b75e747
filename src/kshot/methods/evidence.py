"""The arrays that a method is fitted on: checked, normalised, and only the evidence that it declares."""

import hashlib
import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import ArrayLike

from kshot.errors import EvidenceError, InputError, UndefinedError
from kshot.methods.missing import with_stand_ins
from kshot.methods.parameters import ASSUMED
from kshot.methods.shared_work import once
from kshot.solvers.labels import class_labels, encode_labels, read_labels
from kshot.solvers.ratio_sweep import deflated_means
from kshot.solvers.rows import accuracy, as_numpy, class_counts, class_means, unit_prototypes, unit_rows, working_dtype
from kshot.types import FREE_EVIDENCE, Array, Evidence, Labelled, MethodInfo

LABELLED: tuple[Evidence, ...] = ("pool", "validation", "few_shot_validation", "test")


logger = logging.getLogger(__name__)
# Modules whose lines are not named where a head oversteps.
NOT_THE_USERS = ("kshot", "dataclasses", "jaxtyping")
# Shots on which text and labels are compared, and texts that were warned of.
LEAST_TRIED, MOST_TRIED = 20, 2000
_warned: set[bytes] = set()


@dataclass(frozen=True)
class Task:
    """One few-shot classification task: unit rows in one dtype, labels as 0..C−1, and what else the method declared.

    `classes` are the labels as they were given, in the order of the text's rows. `constants` are the caller's
    parameters, else the encoder's and dataset's constants. Arrays are read-only, and evidence that the method does not
    declare raises an EvidenceError.
    """

    X: Float[Array, "N d"]
    y: Int[Array, " N"]
    text: Float[Array, "C d"]
    n_classes: int
    views: Float[Array, "E N d"] | None
    classes: Shaped[Array, " n_classes"]
    info: MethodInfo
    further: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, int | float] = field(default_factory=dict)

    def __getattribute__(self, name: str) -> Any:
        evidence = {"X": "support", "y": "support", "text": "text"}.get(name)
        if evidence and evidence not in super().__getattribute__("info").sees:
            raise self._undeclared(name, evidence)
        return super().__getattribute__(name)

    @property
    def queries(self) -> Float[Array, "Q d"]:
        return self.evidence("queries")

    @property
    def pool(self) -> Labelled:
        return self.evidence("pool")

    @property
    def few_shot_validation(self) -> Labelled:
        return self.evidence("few_shot_validation")

    @property
    def validation(self) -> Labelled:
        return self.evidence("validation")

    @property
    def test(self) -> Labelled:
        return self.evidence("test")

    def evidence(self, name: Evidence) -> Any:
        """Evidence beside text and shots by its name."""
        if name not in self.further:
            raise self._undeclared(name, name)
        return self.further[name]

    def _undeclared(self, name: str, evidence: str) -> EvidenceError:
        frame: Any = inspect.currentframe()
        while frame.f_globals["__name__"].partition(".")[0] in NOT_THE_USERS:
            frame = frame.f_back
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        sees = ", ".join(f'"{known}"' for known in sorted({*self.info.sees, evidence}))
        return EvidenceError(
            f"{self.info.key} reads task.{name} ({place}) and does not declare `{evidence}` in sees. Write "
            f"sees=frozenset({{{sees}}}) in its info if it may look at that; else do without."
        )

    def but(self, **changes: Any) -> "Task":
        """The same task with these fields changed."""
        same = {each.name: vars(self)[each.name] for each in fields(self)}
        return Task(**{**same, **changes})

    @property
    def logit_scale(self) -> float:
        """Cosines times this are logits."""
        return self.constants.get("logit_scale", ASSUMED["logit_scale"])

    @property
    def anchor_scale(self) -> float:
        """Norm of the text embeddings before they were normalised."""
        return self.constants.get("anchor_scale", ASSUMED["anchor_scale"])

    @cached_property
    def counts(self) -> Int[Array, " C"]:
        return class_counts(self.y, self.n_classes)

    @cached_property
    def means(self) -> Float[Array, "C d"]:
        return once("class means", lambda: class_means(self.X, self.y, self.n_classes), self.X, self.y, self.n_classes)


def prepare(
    info: MethodInfo,
    min_shots: int,
    X: Any,
    y: Any,
    *,
    classes: Sequence[Any] | None = None,
    constants: Mapping[str, int | float] | None = None,
    **further: Any,
) -> Task:
    """Check and normalise what is given to `fit`; `further` evidence and views by name."""
    given = {**further, "support": X}
    for name in sorted(info.sees):
        if given.get(name) is None:
            raise EvidenceError(f"{info.key} needs {name}: {_HOW_TO_PASS[name]}.")
    text = given.get("text")
    dtype = working_dtype(np.asarray(as_numpy(X if X is not None else text, "the support")))
    T = shared_unit_rows(text, "text", dtype) if "text" in info.sees else None
    n_text = None if T is None else len(T)
    if "support" in info.sees:
        rows = shared_unit_rows(X, "the support", dtype)
        labels = read_labels("the support", y, len(rows))
        names = class_labels(labels, n_text, classes)
        numbers = encode_labels("the support", labels, names)
    else:
        # The method looks at no picture, but labels give the names of the classes.
        labels = None if y is None else read_labels("the support", y, len(np.asarray(y)))
        names = class_labels(labels, n_text, classes)
        rows, numbers = np.empty((0, 0 if T is None else T.shape[1]), dtype), np.empty(0, np.int64)
    if T is None:
        T = np.empty((0, rows.shape[1]), dtype)
    if "support" in info.sees:
        if len(T) and T.shape[1] != rows.shape[1]:
            raise InputError(f"text has dimension {T.shape[1]} but the support has {rows.shape[1]}.")
        _check_shots(info, min_shots, numbers, names, named=classes is not None)
    views = _check_views(info, given.get("views"), rows)
    if min_shots == 1 and not _text_can_join(info, len(np.unique(numbers))):
        rows, numbers, views = with_stand_ins(rows, numbers, views, T)
    seen: dict[str, Any] = {}
    for name in LABELLED:
        if name in info.sees:
            seen[name] = labelled(name, given[name][0], given[name][1], dtype, names)
    if "queries" in info.sees:
        seen["queries"] = shared_unit_rows(given["queries"], "the queries", dtype)
    for array in (rows, numbers, T, views, *seen.values()):
        _protect(array)
    return Task(rows, numbers, T, len(names), views, names, info, seen, constants or {})


def _protect(evidence: Any) -> None:
    """Make arrays read-only: several methods may share them."""
    for array in evidence if isinstance(evidence, Labelled) else [evidence]:
        if array is not None:
            array.flags.writeable = False


def warn_of_text(task: Task) -> None:
    """Say once of a text where it tells the shots apart less well than chance, or half as well as the means of the
    others do: the order of its rows may be another."""
    key = hashlib.sha256(task.text.tobytes()).digest()
    rows = np.flatnonzero(task.counts[task.y] > 1)[:MOST_TRIED]
    if key in _warned or len(rows) < LEAST_TRIED:
        return
    X, y = task.X[rows], task.y[rows]
    scores = X @ unit_prototypes(task.means).T
    left_out = unit_prototypes(deflated_means(task.X, task.y, task.means)[rows])
    scores[np.arange(len(rows)), y] = np.einsum("nd,nd->n", X, left_out)
    by_means, by_text = accuracy(scores, y), accuracy(X @ task.text.T, y)
    if by_text < max(1 / task.n_classes, by_means / 2):
        _warned.add(key)
        logger.warning(
            f"text tells {by_text:.1%} of {len(rows)} shots apart, class means {by_means:.1%}, chance "
            f"{1 / task.n_classes:.1%}: text and labels may not belong together. Check the order of the rows of text, "
            "and whether one encoder made both."
        )


def every_view(task: Task) -> Labelled:
    """All views as rows of their own, view by view; the shots themselves where there are none."""
    if task.views is None:
        return Labelled(task.X, task.y)
    return Labelled(task.views.reshape(-1, task.X.shape[1]), np.tile(task.y, len(task.views)))


def view_by_view(task: Task) -> list[Float[Array, "N d"]]:
    """One array of all shots per view; the shots themselves where there are none."""
    return [task.X] if task.views is None else list(task.views)


def part_of(task: Task, rows: Bool[Array, " N"]) -> Task:
    """The same task with these shots only, their views with them."""
    views = None if task.views is None else task.views[:, rows]
    return task.but(X=task.X[rows], y=task.y[rows], views=views)


def without_labels(task: Task) -> Task:
    """The same task without labelled rows beside its shots."""
    return task.but(further={name: rows for name, rows in task.further.items() if name not in LABELLED})


def only_classes_with_shots(task: Task) -> Task:
    """The same task without the classes that have no shots."""
    kept = task.counts > 0
    number = np.cumsum(kept) - 1
    names = task.classes[kept]
    return task.but(y=number[task.y], text=task.text[kept], n_classes=len(names), classes=names)


def average_view(task: Task) -> Float[Array, "N d"]:
    """One row per shot: the unit direction of the mean of its unit views."""
    return task.X if task.views is None else unit_prototypes(task.views.mean(axis=0))


def without_own_image(task: Task, means: Float[Array, "C d"]) -> Float[Array, "M d"]:
    """For each row of `every_view`, its class mean with that picture's views taken out.

    Rows of a class with a single picture get its whole mean; callers do not score them.
    """
    if task.views is None:
        return deflated_means(task.X, task.y, means)
    left = deflated_means(task.views.mean(axis=0), task.y, means)
    return np.tile(left, (len(task.views), 1))


def labelled(what: str, X: ArrayLike, y: ArrayLike, dtype: np.dtype, classes: Shaped[Array, " C"]) -> Labelled:
    """Unit rows and the numbers of their classes."""
    rows = shared_unit_rows(X, what, dtype)
    return Labelled(rows, encode_labels(what, read_labels(what, y, len(rows)), classes))


def shared_unit_rows(X: Any, what: str, dtype: np.dtype) -> Float[Array, "N d"]:
    """`unit_rows`, computed once for all methods of a cell."""
    given = np.asarray(as_numpy(X, what))
    return once("unit rows", lambda: unit_rows(given, what, dtype), given, dtype)


_HOW_TO_PASS = {
    "text": "pass text=T with one prototype per class, shape (C, d)",
    "support": "pass X of shape (N, d) and y of shape (N,)",
    "pool": "pass pool=(X, y), pool images outside the support",
    "validation": "pass validation=(X, y), labelled images outside the support",
    "queries": "pass queries=Q, the unlabelled pictures that it shall classify, shape (Q, d)",
    "few_shot_validation": "pass few_shot_validation=(X, y), a few labelled images per class outside the support",
    "test": "pass test=(X, y); this is an oracle and a bound, not a usable method",
}


def _check_shots(
    info: MethodInfo, min_shots: int, numbers: Int[Array, " N"], classes: Shaped[Array, " C"], named: bool
) -> None:
    counts = class_counts(numbers, len(classes))
    empty = np.flatnonzero(counts == 0)
    if min_shots and len(empty) and not named:
        # Labels that were numbered from 1 look like this too.
        raise InputError(
            f"{len(empty)} of {len(classes)} classes have no shots (first: class {classes[empty[0]]}). "
            "Give every class at least one picture or drop the class from text and labels. If it is meant, name all "
            "classes with classes=[...], and the text stands in where the method reads it."
        )
    alone = min_shots > 1 and not _text_can_join(info, len(classes) - len(empty))
    if min_shots and len(empty) and (alone or "text" not in info.sees):
        why = f"needs {min_shots} shots per class" if alone else "reads no text that could stand in"
        raise UndefinedError(
            f"{len(empty)} of {len(classes)} classes have no shots (first: class {classes[empty[0]]}), and {info.key} "
            f"{why}: n_samples={len(numbers)}. Give every class a picture, or drop the class from text and labels."
        )
    short = np.flatnonzero((counts > 0) & (counts < min_shots))
    if len(short):
        raise UndefinedError(
            f"{info.key} needs {min_shots} shots per class; class {classes[short[0]]} has {counts[short[0]]}: "
            f"n_samples={len(numbers)} in {len(classes)} classes."
        )


def _text_can_join(info: MethodInfo, classes_with_shots: int) -> bool:
    """Whether text can give rows to classes without shots: for methods of text and shots, from two classes on."""
    return info.sees == FREE_EVIDENCE and classes_with_shots > 1


def _check_views(info: MethodInfo, views: Any, rows: Float[Array, "N d"]) -> Array | None:
    if views is None:
        return None
    if not info.views:
        raise InputError(f"{info.key} does not use augmented views; call fit without views=.")
    views = np.asarray(as_numpy(views, "views"))
    if views.ndim != 3 or views.shape[1:] != rows.shape:
        raise InputError(f"views must have shape (E, {rows.shape[0]}, {rows.shape[1]}), not {views.shape}.")
    flat = unit_rows(views.reshape(-1, views.shape[2]), "views", rows.dtype)
    return flat.reshape(views.shape)
