"""Choose the pictures to label next: those whose labels reduce a regression's variance on all the others most."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from kshot.encode.pictures import list_pictures
from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.pictures.encoded import encode_readable, stacked_rows
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import Prediction, predict_feature
from kshot.types import Array

# Variance of a label's error, in units of a picture's mean squared distance from the mean of all.
NOISE = 1.0


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Predictions of the pictures to label, the most useful first; known pictures; why others are not read."""

    chosen: tuple[Prediction, ...]
    known: int
    unreadable: tuple[str, ...]


def unlabelled_files(folder: Path) -> list[Path]:
    """The pictures of a folder at any depth; none is an error."""
    files = list_pictures(folder) if folder.is_dir() else []
    if not files:
        raise InputError(f"{folder} holds no pictures to choose from. Give a folder of unlabelled pictures.")
    return files


def suggest_files(head: PictureHead, files: Sequence[Path], count: int, encoder: Encoder) -> Suggestions:
    """Choose `count` of the files, or all if there are fewer."""
    if count < 1:
        raise InputError(f"{count} pictures were asked for. Ask for one at least.")
    read, unreadable = encode_readable(encoder, files, "unlabelled pictures")
    new = [(path, one) for path, one in read if one.sha256 not in head.about.shot_sha256]
    chosen = ()
    if new:
        first = {one.sha256: path for path, one in reversed(new)}
        fresh = [(path, one) for path, one in new if first[one.sha256] == path]
        X = stacked_rows(one for _, one in fresh)
        rows = most_useful(X, head.shots.X, entropy(head.probabilities(X)), count)
        chosen = tuple(predict_feature(head, str(fresh[row][0]), fresh[row][1].feature, top=2) for row in rows)
    return Suggestions(chosen, len(read) - len(new), tuple(unreadable))


def entropy(probabilities: Float[Array, "n C"]) -> Float[Array, " n"]:
    """The entropy of each picture's probabilities."""
    from scipy.special import entr

    return entr(probabilities).sum(axis=1)


def most_useful(
    X: Float[Array, "n d"], seen: Float[Array, "N d"], weights: Float[Array, " n"], count: int
) -> list[int]:
    """Rows of X whose labels reduce a ridge regression's variance on all rows of X most, chosen greedily.

    V-optimal design (Yu, Bi and Tresp, Active learning via transductive experimental design, ICML 2006), here with
    rows that have a label already and a weight for every row: with M = (μI + Σ_seen s sᵀ)⁻¹ and G = Σ w x xᵀ, the label
    of x reduces tr(G M) by xᵀM G M x/(1 + xᵀM x). A row near a chosen one gains little, so the choice is spread.
    """
    rows = np.vstack([X, seen]).astype(np.float64)
    rows -= rows.mean(axis=0)
    rows /= np.sqrt((rows**2).sum(axis=1).mean()) or 1.0
    U, S = rows[: len(X)], rows[len(X) :]
    # M by Woodbury: there are fewer shots than dimensions.
    inner = np.linalg.solve(NOISE * np.eye(len(S)) + S @ S.T, S @ U.T)
    V = (U - inner.T @ S) / NOISE
    VG = V @ ((U.T * weights) @ U)
    chosen: list[int] = []
    for _ in range(min(count, len(U))):
        variance = np.einsum("nd,nd->n", U, V)
        gains = np.einsum("nd,nd->n", V, VG) / (1 + variance)
        gains[chosen] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        share = (U @ V[best]) / (1 + variance[best])
        V, VG = V - np.outer(share, V[best]), VG - np.outer(share, VG[best])
    return chosen
