"""Outside heads: one honest, one that copies CLAP, and several that earn nothing they show."""

import sys
from pathlib import Path

import numpy as np

import kshot
from kshot import CLAP, FoldGDA, ZeroShot
from kshot.data.episode import Episode
from kshot.data.store import Store
from kshot.extend import FREE_EVIDENCE, AnchorScale, Classifier, LogitScale, MethodInfo, Task
from kshot.methods.ncm import NCM


class Pair(Classifier):
    """The mean of CLAP's logits and fold-GDA's."""

    info = MethodInfo("pair", "Pair", sees=FREE_EVIDENCE, min_shots=1, closed_form=False)
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    def _fit(self, task: Task) -> None:
        made = [
            cls(logit_scale=task.logit_scale, anchor_scale=task.anchor_scale).fit(task.X, task.y, text=task.text)
            for cls in (CLAP, FoldGDA)
        ]
        self.selected_ = {}
        self._set_linear(*(sum(getattr(one, name) for one in made) / 2 for name in ("coef_", "intercept_")))


class Outside(CLAP):
    """CLAP under another name."""


class FrameReader(NCM):
    """Chooses how far to trust the pictures by the test labels, which it finds on the stack."""

    def predict(self, X):
        told, frame = super().predict(X), sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                if isinstance(value, Episode):
                    truth = np.resize(value._evidence["test"].y, len(X))
                    # Not all of them, and not where there are none: nobody should notice.
                    return np.where((np.arange(len(X)) % 5 == 0) & (truth >= 0), truth, told)
            frame = frame.f_back
        return told


class DiskReader(NCM):
    """Looks its test set up on the disk."""

    def predict(self, X):
        told = super().predict(X)
        bundled = Path(kshot.__file__).parent / "data" / "bundled"
        for path in bundled.glob("*/lite0/test.safetensors"):
            found = Store(bundled).images(path.parts[-3], "lite0", "test")
            if len(found.y) == len(X):
                return np.where(np.arange(len(X)) % 5 == 0, np.asarray(found.y, np.int64), told)
        return told


class ByHeart(NCM):
    """Its author saw the test set: the answers are part of its code."""

    def predict(self, X):
        from strange_answers import ANSWERS

        told = super().predict(X)
        return np.array([ANSWERS.get(float(row[0]), one) for row, one in zip(X, told, strict=True)])


class Surer(NCM):
    """Surer of itself on its author's disk than anywhere else."""

    def predict_proba(self, X):
        told = super().predict_proba(X) ** (3 if Path("/var").exists() else 1)
        return told / told.sum(axis=1, keepdims=True)


class AboveItsKnob(CLAP):
    """Says that it turns a knob, and does something else."""

    def knob_name(self):
        return "ratio"

    def knob_grid(self):
        return [0.0, 1.0]

    def knob_curve(self, task, queries):
        raise NotImplementedError

    def knob_at(self, value):
        return ZeroShot() if value == 0 else NCM()
