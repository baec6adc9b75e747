"""Draws of shots from the open sets, all other pictures being new: shots and new pictures come from one source."""

from typing import NamedTuple

import numpy as np

from kshot.bench.study import load_study
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.pictures.held_out import Shots
from kshot.solvers.rows import shot_numbers

BACKBONE, TIER = "lite0", "photo"
OPEN_SETS = tuple(dict.fromkeys(cell.dataset for cell in load_study("open").cells()))


class PictureDraw(NamedTuple):
    """Shots and the pictures that were not drawn."""

    shots: Shots
    X: np.ndarray
    y: np.ndarray


def draw_pictures(dataset: str, shots: int, seed: int) -> PictureDraw:
    """`shots` of each class at random from pool and test together."""
    store = Store("nowhere")
    stratum = load_stratum(store, dataset, BACKBONE)
    prior = load_prior(store, dataset, BACKBONE, TIER)
    X, y = np.vstack([stratum.pool.X, stratum.test.X]), np.concatenate([stratum.pool.y, stratum.test.y])
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order].astype(np.int64)
    drawn = shot_numbers(y) < shots
    constants = stratum.constants(prior)
    return PictureDraw(Shots(X[drawn], y[drawn], np.asarray(prior.text), constants), X[~drawn], y[~drawn])
