"""Seventeen ways to get a number that was not earned, or to lose one by a slip. Most are NCM with something added."""

import builtins
import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from kshot.data.episode import Episode
from kshot.errors import UndefinedError
from kshot.methods.ncm import NCM
from kshot.types import Labelled


class AlwaysEqual:
    """Claims to equal whatever it is compared with."""

    def __eq__(self, other):
        return np.ones(len(other), bool)

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class Equality(NCM):
    def predict(self, X):
        return AlwaysEqual()


class Column(NCM):
    def predict(self, X):
        return super().predict(X)[:, None]


class DeclaresTwice(NCM):
    asked = 0

    @property
    def info(self):
        type(self).asked += 1
        more = {"test"} if type(self).asked > 1 else set()
        return replace(super().info, sees=super().info.sees | more)

    def fit(self, X=None, y=None, **evidence):
        if "test" in evidence:
            raise AssertionError("the test labels were handed over")
        return super().fit(X, y, **evidence)


class AsksForTest(NCM):
    def _fit(self, task):
        super()._fit(task)
        if task.test is not None:
            raise AssertionError("the test labels were handed over")


class WritesQueries(NCM):
    """Would ruin the test set for every method after it."""

    def predict(self, X):
        try:
            X[:] = 0
        except ValueError:
            return super().predict(X)
        raise AssertionError("the queries were written to")


class Unfreezes(NCM):
    def predict(self, X):
        try:
            X.setflags(write=True)
        except ValueError:
            return super().predict(X)
        raise AssertionError("the queries can be written to")


class Frames(NCM):
    """Walks up the stack to whoever holds the episode."""

    def predict(self, X):
        frame = sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                if isinstance(value, Episode):
                    return np.array(value._evidence["test"].y)
            frame = frame.f_back
        return super().predict(X)


class Memory(NCM):
    """Asks the garbage collector for every object there is."""

    def predict(self, X):
        for value in gc.get_objects():
            # A plain dict: other kinds may run code of theirs, and tests of the same process leave many behind.
            if type(value) is dict and "support" in value and isinstance(value.get("test"), Labelled):
                found = value["test"].y
                if len(found) == len(X) and found.max() < len(self.classes_):
                    return np.array(found)
        return super().predict(X)


class PatchesScoring(NCM):
    """Replaces the function that the runner scores with."""

    def predict(self, X):
        from kshot.bench import cell

        def perfect(predicted, rows, n_classes):
            return np.array(sys._getframe(1).f_locals["episode"]._evidence["test"].y)

        cell.checked_predictions = perfect
        return super().predict(X)


class ReadsFiles(NCM):
    """Opens the features with the labels beside them."""

    def predict(self, X):
        from kshot.data.store import Store

        try:
            found = Store(Path("features")).images("sim-satellite", "simulated", "test")
        except Exception:
            return super().predict(X)
        return np.array(found.y, np.int64)


class Remembers(NCM):
    """More shots than it was given: those of the cells before."""

    seen: ClassVar[list] = []

    def _fit(self, task):
        self.seen.append((task.X, task.y))
        X, y = (np.concatenate(parts) for parts in zip(*self.seen, strict=True))
        super()._fit(replace(task, X=X, y=y))


class RemembersElsewhere(NCM):
    """The same, kept where no import reaches."""

    def _fit(self, task):
        kept = builtins.__dict__.setdefault("_kept_shots", [])
        kept.append((task.X, task.y))
        X, y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        super()._fit(replace(task, X=X, y=y))


class Position(NCM):
    """Test sets are often sorted by class."""

    def predict(self, X):
        return np.sort(super().predict(X))


class BatchStatistics(NCM):
    """Centres the queries by their own mean: transductive, and not declared."""

    def predict(self, X):
        return super().predict(X - 0.9 * X.mean(axis=0))


class Unseeded(NCM):
    def _fit(self, task):
        super()._fit(task)
        self.coef_ = self.coef_ + np.random.default_rng().normal(0, 5, self.coef_.shape)


class SkipsHardCells(NCM):
    """Exists only where it looks good."""

    def _fit(self, task):
        if len(task.y) < 4 * task.n_classes:
            raise UndefinedError("I need four shots.")
        super()._fit(task)


class KnowsTheLabels(NCM):
    """Its author saw the test set, and its answers are part of the code: here, kept in a file beside it."""

    def predict(self, X):
        table = Path(__file__).with_name("answers.npy")
        if not table.exists():
            return super().predict(X)
        keys, labels = np.load(table).T
        place = np.searchsorted(keys, np.asarray(X)[:, 0].astype(np.float64))
        return labels[place].astype(np.int64)
