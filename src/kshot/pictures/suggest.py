"""Which pictures to label next: those whose labels would tell most about all the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from kshot.encode.pictures import list_pictures
from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.pictures.encoded import Encoded, encode_files, stacked_rows
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import Guess, judge_picture
from kshot.progress import Progress
from kshot.types import Array

# How much a label is doubted, in units of a picture's mean squared distance from the mean of all.
NOISE = 1.0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A picture worth a label, and what the head takes it for."""

    picture: Path
    top: tuple[Guess, ...]


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The most useful first; `known` counts pictures that the head learnt from, `unreadable` says why others are not
    looked at."""

    chosen: tuple[Suggestion, ...]
    known: int
    unreadable: tuple[str, ...]


def unlabelled_files(folder: Path) -> list[Path]:
    """The pictures of the folder, at any depth."""
    files = list_pictures(folder) if folder.is_dir() else []
    if not files:
        raise InputError(f"{folder} holds no pictures to choose from. Give a folder of unlabelled pictures.")
    return files


def suggest_files(head: PictureHead, files: Sequence[Path], count: int, encoder: Encoder) -> Suggestions:
    """`count` of the files, fewer where there are fewer."""
    if count < 1:
        raise InputError(f"{count} pictures were asked for. Ask for one at least.")
    found: dict[str, tuple[Path, Encoded]] = {}
    unreadable, known = [], 0
    with Progress("unlabelled pictures", len(files), ends=False) as progress:
        for path, one in zip(files, encode_files(encoder, files), strict=True):
            progress.advance()
            if isinstance(one, InputError):
                unreadable.append(str(one))
            elif one.sha256 in head.about.shot_sha256:
                known += 1
            else:
                found.setdefault(one.sha256, (path, one))
    if not found:
        return Suggestions((), known, tuple(unreadable))
    fresh = list(found.values())
    X = stacked_rows(one for _, one in fresh)
    rows = most_useful(X, head.shots.X, doubt(head.probabilities(X)), count)
    chosen = [
        Suggestion(path, judge_picture(head, str(path), one.feature, top=2).top)
        for path, one in (fresh[row] for row in rows)
    ]
    return Suggestions(tuple(chosen), known, tuple(unreadable))


def doubt(probabilities: Float[Array, "n C"]) -> Float[Array, " n"]:
    """The entropy of each picture's probabilities."""
    from scipy.special import entr

    return entr(probabilities).sum(axis=1)


def most_useful(
    X: Float[Array, "n d"], seen: Float[Array, "N d"], weights: Float[Array, " n"], count: int
) -> list[int]:
    """Rows of X whose labels would shrink a ridge regression's variance on all rows of X most, one after the other.

    V-optimal design (Yu, Bi and Tresp, Active learning via transductive experimental design, ICML 2006), here with
    the rows that have a label already and with a weight for every row: with M = (μI + Σ_seen s sᵀ)⁻¹ and
    G = Σ w x xᵀ, the label of x takes xᵀM G M x/(1 + xᵀM x) off tr(G M). A row near one that was chosen gains little,
    so the choice spreads by itself.
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
