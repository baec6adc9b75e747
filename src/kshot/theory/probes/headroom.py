"""Separation that the blend path reaches, against the best linear rule, over all class pairs."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.solvers.rows import class_means
from kshot.theory.capacity import capacity, headroom, margin_ratio, pooled_covariance, separation_error
from kshot.types import Array, Labelled


def headroom_row(pool: Labelled, text: Float[Array, "C d"]) -> dict[str, float]:
    """Mean margins, errors and headroom of Theorem 2, in per cent where they are errors."""
    X = pool.X.astype(np.float64)
    means = class_means(X, pool.y, len(text))
    ratios = capacity(means, text.astype(np.float64), pooled_covariance(X, pool.y, len(text)))
    error = {name: 100 * np.mean(separation_error(getattr(ratios, name))) for name in ("path", "plane", "full")}
    return {
        "pairs": float(len(ratios.full)),
        "path/full": float(margin_ratio(ratios).mean()),
        "path error": float(error["path"]),
        "plane error": float(error["plane"]),
        "full error": float(error["full"]),
        "headroom": float(100 * headroom(ratios).mean()),
        "best s": float(ratios.shrinkage.mean()),
    }


def stored_headroom(store: Store, strata: Iterable[tuple[str, str]], tier: str) -> dict[tuple[str, str], float]:
    """Headroom in points of error of every (dataset, backbone) that has this tier's prompts."""
    return {
        (dataset, backbone): headroom_row(
            load_stratum(store, dataset, backbone).pool, load_prior(store, dataset, backbone, tier).text
        )["headroom"]
        for dataset, backbone in strata
        if tier in store.tiers(dataset, backbone)
    }
