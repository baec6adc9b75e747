"""Strata of a few pictures in a store: clusters around the prototypes of their classes."""

import numpy as np

from kshot.data.store import Store

CLASSES = ("cat", "dog", "fox")


def unit(X):
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def write_stratum(store, dataset="d", backbone="b", parts=None, classes=CLASSES, noise=1.0, d=8, **about) -> Store:
    """Write `parts`, pictures per class by name, and text of the tier photo; row r is a picture of class r modulo C."""
    rng, C = np.random.default_rng(len(dataset)), len(classes)
    text = unit(rng.normal(size=(C, d)))
    for part, per_class in (parts or {"pool": 6, "test": 6}).items():
        y = np.tile(np.arange(C), per_class)
        X = unit(text[y] + noise * rng.normal(size=(len(y), d)))
        store.write_images(dataset, backbone, part, X, y, [f"{part}/{row}" for row in range(len(y))], classes, **about)
    norms = np.arange(1.0, C + 1, dtype=np.float32)
    store.write_text(dataset, backbone, "photo", text, norms, classes, **about)
    return store
