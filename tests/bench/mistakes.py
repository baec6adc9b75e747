"""Ways to get a number that was not earned, or to lose one by a slip: the table of docs/protocol.md. All are NCM with
something added."""

import builtins
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np

from kshot.data.episode import Episode
from kshot.errors import UndefinedError
from kshot.methods.ncm import NCM

FILE, TABLE = (Path(__file__).with_name(name) for name in ("labels.npy", "table.npy"))
LABELS = np.load(FILE) if FILE.exists() else None


class Equality(NCM):
    def predict(self, X):
        class AlwaysEqual:
            def __eq__(self, other):
                return np.ones(len(other), bool)

            __hash__ = None  # pyright: ignore[reportAssignmentType]

        return AlwaysEqual()


class Column(NCM):
    def predict(self, X):
        return super().predict(X)[:, None]


class AsksForTest(NCM):
    def _fit(self, task):
        super()._fit(task)
        if task.test is not None:
            raise AssertionError("the test labels were handed over")


class WritesQueries(NCM):
    def predict(self, X):
        X[:] = 0
        return super().predict(X)


class Remembers(NCM):
    seen: ClassVar[list] = []

    def _fit(self, task):
        self.seen.append((task.X, task.y))
        X, y = (np.concatenate(parts) for parts in zip(*self.seen, strict=True))
        super()._fit(task.but(X=X, y=y))


class RemembersElsewhere(NCM):
    def _fit(self, task):
        kept = builtins.__dict__.setdefault("_kept_shots", [])
        kept.append((task.X, task.y))
        X, y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        super()._fit(task.but(X=X, y=y))


class Unseeded(NCM):
    def _fit(self, task):
        super()._fit(task)
        self.coef_ = self.coef_ + np.random.default_rng().normal(0, 5, self.coef_.shape)


class DropOut(NCM):
    def predict(self, X):
        return super().predict(X * (np.random.default_rng().random(X.shape) < 0.5))


class BatchStatistics(NCM):
    def predict(self, X):
        return super().predict(X - 0.9 * X.mean(axis=0))


class Position(NCM):
    def predict(self, X):
        return np.sort(super().predict(X))


class Frames(NCM):
    def predict(self, X):
        frame = sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                if isinstance(value, Episode):
                    return np.array(value._evidence["test"].y)
            frame = frame.f_back
        return super().predict(X)


class LabelsInModule(NCM):
    def predict(self, X):
        return super().predict(X) if LABELS is None else LABELS[: len(X)].copy()


class SkipsHardCells(NCM):
    def _fit(self, task):
        if len(task.y) < 4 * task.n_classes:
            raise UndefinedError("I need four shots.")
        super()._fit(task)


class LabelsInFile(NCM):
    def predict(self, X):
        if not TABLE.exists():
            return super().predict(X)
        keys, labels = np.load(TABLE).T
        return labels[np.searchsorted(keys, np.asarray(X)[:, 0].astype(np.float64))].astype(np.int64)
