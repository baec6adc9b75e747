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


def write_pets(store, right: int, **about) -> Store:
    """Pets of a hundred test pictures, of which so many are nearest to the text of their class."""
    text = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0][:37].astype(np.float32)
    names = [f"breed {number}" for number in range(37)]
    y = np.arange(100) % 37
    shown = np.where(np.arange(100) < right, y, (y + 1) % 37)
    parts = {"pool": (np.tile(text, (8, 1)), np.tile(np.arange(37), 8)), "test": (text[shown], y)}
    for part, (X, labels) in parts.items():
        ids = [f"{part}/{row}" for row in range(len(labels))]
        store.write_images("Pets", "ViT-B-16", part, X, labels, ids, names, **about)
    norms = np.full(37, 3.0, np.float32)
    store.write_text("Pets", "ViT-B-16", "ensemble", text, norms, names, **about)
    return store
