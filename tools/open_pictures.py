"""Draws of shots from sets of features, and new pictures of the same source."""

from dataclasses import dataclass, replace

import numpy as np

from kshot.bench.study import load_study
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.pictures.held_out import Shots
from kshot.solvers.rows import shot_numbers

OPEN_SETS = tuple(dict.fromkeys(cell.dataset for cell in load_study("open").cells()))
# Further new pictures say little more.
MOST_NEW = 1200


@dataclass(frozen=True, slots=True)
class PictureDraw:
    """Shots, the same with one more of each class, and pictures that are in neither."""

    shots: Shots
    more: Shots
    X: np.ndarray
    y: np.ndarray


def draw_pictures(
    dataset: str,
    shots: int,
    seed: int,
    backbone: str = "lite0",
    store: Store | None = None,
    most_classes: int | None = None,
) -> PictureDraw:
    """`shots` of each class at random; pool and test are shuffled together unless they were made differently (CLIP)."""
    store, tier = store or Store("nowhere"), "photo" if backbone == "lite0" else "text"
    stratum, prior = load_stratum(store, dataset, backbone), load_prior(store, dataset, backbone, tier)
    parts = (stratum.pool.X, stratum.pool.y.astype(np.int64)), (stratum.test.X, stratum.test.y.astype(np.int64))
    apart = backbone != "lite0" and dataset != "whu-rs19"
    X, y = parts[0] if apart else (np.concatenate(both) for both in zip(*parts, strict=True))
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    number = shot_numbers(y)
    text, constants = np.asarray(prior.text), stratum.constants(prior)
    drawn, more = (Shots(X[number < K], y[number < K], text, constants) for K in (shots, shots + 1))
    X_new, y_new = parts[1] if apart else (X[number > shots], y[number > shots])
    draw = PictureDraw(drawn, more, X_new, y_new)
    if most_classes is not None:
        draw = some_classes(draw, most_classes, seed)
    new = np.random.default_rng(seed).permutation(np.flatnonzero(draw.y >= 0))[:MOST_NEW]
    return replace(draw, X=draw.X[new], y=draw.y[new])


def some_classes(draw: PictureDraw, count: int, seed: int) -> PictureDraw:
    """So many of the classes at random; new pictures of the others have the label −1."""
    number = np.full(len(draw.shots.text), -1)
    kept = np.sort(np.random.default_rng(seed).permutation(len(number))[:count])
    number[kept] = np.arange(len(kept))

    def of(shots: Shots) -> Shots:
        rows = number[shots.y] >= 0
        return Shots(shots.X[rows], number[shots.y[rows]], shots.text[kept], shots.constants)

    return PictureDraw(of(draw.shots), of(draw.more), draw.X, number[draw.y])
