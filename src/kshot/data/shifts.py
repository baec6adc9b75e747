"""Shots of one dataset, test pictures of another: written into the store as a dataset of its own.

Its classes are those that both have, under the names and with the text of the dataset that shots come from.
"""

from typing import Any

import numpy as np

from kshot.data.catalog import ShiftEntry, shifts
from kshot.data.store import ImageFeatures, Manifest, Store
from kshot.errors import FeatureError


def make_shift(dataset: str, backbone: str, store: Store) -> None:
    """Write the shift of that name where both its datasets are stored, unless it was made of what they hold now."""
    shift = shifts().get(dataset)
    if shift and _sources(shift, backbone, store) and not is_shift_written(shift, backbone, store):
        write_shift(shift, backbone, store)


def write_shift(shift: ShiftEntry, backbone: str, store: Store) -> None:
    """Write the parts of a shift, text first and test last, because readers look for all of them."""
    train = store.images(shift.train, backbone, store.part_of(shift.train, backbone, "pool"))
    test = store.images(shift.test, backbone, store.part_of(shift.test, backbone, "test"))
    _check_encoders(shift, train.manifest, test.manifest)
    shared = _shared(shift, train.manifest.classes, test.manifest.classes)
    rows = [train.manifest.classes.index(name) for name in shared]
    for tier in store.tiers(shift.train, backbone):
        stored = store.text(shift.train, backbone, tier)
        norms = None if stored.norms is None else np.array(stored.norms)[rows]
        about = _about(shift, stored.manifest)
        store.write_text(shift.name, backbone, tier, np.array(stored.prototypes)[rows], norms, list(shared), **about)
    _write(shift, backbone, store, "pool", train, list(shared), list(shared))
    _write(shift, backbone, store, "test", test, list(shared.values()), list(shared))


def is_shift_written(shift: ShiftEntry, backbone: str, store: Store) -> bool:
    """Whether every part is stored and was made of the features that the two datasets have now, or somebody stored
    features of their own under the shift's name."""
    sources = _sources(shift, backbone, store)
    there = [part for part in (*sources, "all") if store.has(shift.name, backbone, part)]
    stored = {part: store.manifest(shift.name, backbone, part) for part in there}
    if any(one.protocol != _protocol(shift) for one in stored.values()):
        return True
    made_of = {part: one.provenance for part, one in stored.items()}
    return made_of == {part: _made_of(source) for part, source in sources.items()}


def _sources(shift: ShiftEntry, backbone: str, store: Store) -> dict[str, Manifest]:
    """What each part is made of; nothing where one of the datasets is not stored."""
    made_of = {f"text-{tier}": (shift.train, f"text-{tier}") for tier in store.tiers(shift.train, backbone)}
    for split, dataset in (("pool", shift.train), ("test", shift.test)):
        part = store.part_of(dataset, backbone, split)
        if not store.has(dataset, backbone, part):
            return {}
        made_of[split] = dataset, part
    return {name: store.manifest(dataset, backbone, part) for name, (dataset, part) in made_of.items()}


def _protocol(shift: ShiftEntry) -> str:
    return f"{shift.train} to {shift.test}"


def _made_of(manifest: Manifest) -> dict[str, str]:
    return {"sha256": manifest.sha256, "meaning": manifest.meaning()}


def _shared(shift: ShiftEntry, train: tuple[str, ...], test: tuple[str, ...]) -> dict[str, str]:
    """The class of the test pictures for each class of the shots, in the order of the shots' dataset."""
    wanted = shift.classes or {name: name for name in train if name in test}
    strange = [f"{shift.train} '{name}'" for name in wanted if name not in train]
    strange += [f"{shift.test} '{name}'" for name in wanted.values() if name not in test]
    if strange or len(wanted) < 2:
        found = f"no class {', '.join(strange)}" if strange else f"{len(wanted)} classes in common"
        raise FeatureError(f"{shift.name} cannot be made of the stored features: there is {found}. Encode both again.")
    return {name: wanted[name] for name in train if name in wanted}


def _check_encoders(shift: ShiftEntry, train: Manifest, test: Manifest) -> None:
    if (train.dim, train.encoder) != (test.dim, test.encoder):
        raise FeatureError(
            f"{shift.train} and {shift.test} with {train.backbone} come from different encoders. Encode both again."
        )


def _write(
    shift: ShiftEntry,
    backbone: str,
    store: Store,
    part: str,
    images: ImageFeatures,
    names: list[str],
    classes: list[str],
) -> None:
    """The pictures of these classes, numbered in their order; ids say which dataset they come from."""
    number = {images.manifest.classes.index(name): place for place, name in enumerate(names)}
    y = np.array(images.y)
    rows = np.flatnonzero(np.isin(y, list(number)))
    labels = np.array([number[int(label)] for label in y[rows]], np.int64)
    ids = [f"{images.manifest.dataset}/{images.ids[row]}" for row in rows]
    about = _about(shift, images.manifest)
    store.write_images(shift.name, backbone, part, np.array(images.X)[rows], labels, ids, classes, **about)


def _about(shift: ShiftEntry, manifest: Manifest) -> dict[str, Any]:
    return {
        "encoder": manifest.encoder,
        "logit_scale": manifest.logit_scale,
        "logit_bias": manifest.logit_bias,
        "simulated": manifest.simulated,
        "licence": manifest.licence,
        "source": f"{shift.train} (shots) and {shift.test} (test)",
        "protocol": _protocol(shift),
        "provenance": _made_of(manifest),
    }
