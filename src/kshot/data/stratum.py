"""One (dataset, backbone): pool, test and text, ready to draw episodes from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.data.catalog import dataset_entry
from kshot.data.episode import Episode, asked_classes, cap_pool, class_shots, draw_support, keyed_order, self_split
from kshot.data.store import IMAGE_PARTS, ImageFeatures, Manifest, Store
from kshot.data.views import StoredViews, open_views
from kshot.errors import FeatureError
from kshot.solvers.rows import frozen, read_only, row_blocks, unit_rows
from kshot.types import BALANCED, Array, Labelled, Views

# Few-shot validation in the literature: as many pictures per class as shots, but no more than this.
MOST_VALIDATION_SHOTS = 4


@dataclass(frozen=True)
class Stratum:
    """Unit features in one working dtype, with the encoder's constants and the hashes they came from.

    `protocol` tells whose splits these are: official ones, the 68/32 rule's (self), CoOp's. `supports` are shots that
    somebody else drew, as ids by (K, seed).
    """

    dataset: str
    backbone: str
    pool: Labelled
    pool_ids: tuple[str, ...]
    test: Labelled
    test_ids: tuple[str, ...]
    n_classes: int
    simulated: bool
    logit_scale: float | None
    hashes: dict[str, str]
    val: Labelled | None = None
    protocol: str = ""
    views: Mapping[Views, StoredViews] = field(default_factory=dict)
    supports: Mapping[tuple[int, int], Sequence[str]] = field(default_factory=dict)

    def episode(self, shots: int, seed: int, prior: "Prior | None", profile: str = BALANCED) -> Episode:
        """The support of (dataset, shots, seed, profile) and all other evidence."""
        support = self._drawn(shots, seed, profile)
        drawn = [self.pool_ids[row] for row in support]
        residue = np.setdiff1d(np.arange(len(self.pool.y)), support)
        asked = asked_classes(profile, self.n_classes)
        shown = np.flatnonzero(np.isin(self.test.y, asked))
        test_ids = tuple(self.test_ids[row] for row in shown)
        entry = dataset_entry(self.dataset)
        return Episode(
            text=None if prior is None else prior.text,
            support=_take(self.pool, support),
            residue=_take(self.pool, residue),
            test=self._asked_for(asked, shown),
            n_classes=self.n_classes,
            few_shot_validation=_take(self.pool, self._next_drawn(shots, seed, profile)),
            query_order=keyed_order(test_ids, "queries", self.dataset),
            validation=self.val,
            views={views: stored.of(drawn) for views, stored in self.views.items()},
            asked=asked,
            constants=self.constants(prior),
            dataset_constants={} if entry is None else _known(entry.constants),
        )

    def constants(self, prior: "Prior | None") -> dict[str, int | float]:
        """The encoder's constants that are known."""
        return _known({"logit_scale": self.logit_scale, "anchor_scale": None if prior is None else prior.norm})

    def _asked_for(self, asked: Int[Array, " A"], shown: Int[Array, " n"]) -> Labelled:
        """The test pictures of these classes, labelled by their places among them."""
        if len(shown) == len(self.test.y):
            return self.test
        return Labelled(frozen(self.test.X[shown]), frozen(np.searchsorted(asked, self.test.y[shown])))

    def _next_drawn(self, shots: int, seed: int, profile: str) -> Int[Array, " n"]:
        """The next pictures in the order of the draw: as many per class as shots, at most four."""
        more = min(shots, MOST_VALIDATION_SHOTS)
        return np.setdiff1d(self._drawn(shots, seed, profile, more), self._drawn(shots, seed, profile))

    def _drawn(self, shots: int, seed: int, profile: str, more: int = 0) -> Int[Array, " n"]:
        """The shots of every class under the profile, and as many more."""
        per_class = class_shots(profile, self.dataset, self.pool.y, self.n_classes, shots, seed)
        pool = self.dataset, self.pool_ids, self.pool.y
        given = self.supports.get((shots, seed))
        if given is None:
            return draw_support(*pool, per_class + more, seed)
        wanted = set(given)
        place = {name: row for row, name in enumerate(self.pool_ids) if name in wanted}
        return draw_support(*pool, per_class + more, seed, [place[name] for name in given])


@dataclass(frozen=True)
class Prior:
    """One tier's text prototypes, and the norm of the embeddings that they were made of."""

    text: Float[Array, "C d"]
    norm: float | None = None
    sha256: str = ""


def load_stratum(
    store: Store,
    dataset: str,
    backbone: str,
    dtype: str = "float32",
    views: Iterable[Views] = (),
    supports: Mapping[tuple[int, int], Sequence[str]] = MappingProxyType({}),
    pool_cap: int | None = None,
) -> Stratum:
    """Read, verify and normalise; official splits where stored, with at most `pool_cap` pool pictures of a class, else
    the 68/32 rule."""
    base = store.images(dataset, backbone, store.part_of(dataset, backbone, "pool"))
    in_pool, val = _in_pool(base, pool_cap), None
    if base.manifest.part == "all":
        tested, in_test, parts = base, ~in_pool, [base]
    else:
        tested, in_test = store.images(dataset, backbone, "test"), None
        parts = [base, tested]
        _check_pair(base, tested)
        if store.has(dataset, backbone, "val"):
            val_part = store.images(dataset, backbone, "val")
            _check_pair(val_part, tested)
            parts.append(val_part)
            val = _select(val_part, None, dtype)
    about = base.manifest
    return Stratum(
        dataset=dataset,
        backbone=backbone,
        pool=_select(base, in_pool, dtype),
        pool_ids=_chosen(base.ids, in_pool),
        test=_select(tested, in_test, dtype),
        test_ids=_chosen(tested.ids, in_test),
        n_classes=len(about.classes),
        simulated=about.simulated,
        logit_scale=about.logit_scale,
        hashes={part.manifest.part: part.manifest.sha256 for part in parts},
        val=val,
        protocol=about.protocol or ("self" if about.part == "all" else "official"),
        views={asked: open_views(store, about, asked, dtype) for asked in views},
        supports=supports,
    )


def check_parts(store: Store, dataset: str, backbone: str) -> None:
    """Raise where a picture is in two parts, or parts differ in classes or dimensions."""
    parts = [part for part in ("pool", "val") if store.has(dataset, backbone, part)]
    for part in parts:
        _check_pair(store.images(dataset, backbone, part), store.images(dataset, backbone, "test"))


def load_prior(store: Store, dataset: str, backbone: str, tier: str, dtype: str = "float32") -> Prior:
    """One tier's prototypes; its norm is the mean the encoder gave, or None where it was lost."""
    stored = store.text(dataset, backbone, tier)
    _check_text(store, stored.manifest)
    text = unit_rows(np.array(stored.prototypes), f"text of {dataset}", np.dtype(dtype))
    norm = None if stored.norms is None else float(np.mean(stored.norms, dtype=np.float64))
    return Prior(frozen(text), norm, stored.manifest.sha256)


def _known(constants: Mapping[str, int | float | None]) -> dict[str, int | float]:
    return {name: value for name, value in constants.items() if value is not None}


class Pool(NamedTuple):
    """The part that holds the pool, without its features; `inside` is False for rows that the 68/32 rule tests on and
    for those beyond the cap of their class."""

    ids: tuple[str, ...]
    labels: Int[Array, " N"]
    inside: Bool[Array, " N"]
    classes: tuple[str, ...]
    place: dict[str, int]

    def drawable(self) -> tuple[tuple[str, ...], Int[Array, " N"], int]:
        """Ids and labels of the rows inside, and the number of classes."""
        return _chosen(self.ids, self.inside), self.labels[self.inside], len(self.classes)


def pool_rows(store: Store, dataset: str, backbone: str, pool_cap: int | None = None) -> Pool:
    """The rows that supports are drawn from."""
    part = store.images(dataset, backbone, store.part_of(dataset, backbone, "pool"))
    place = {name: row for row, name in enumerate(part.ids)}
    return Pool(part.ids, np.array(part.y), _in_pool(part, pool_cap), part.manifest.classes, place)


def _in_pool(part: ImageFeatures, most: int | None) -> Bool[Array, " N"]:
    """True for the rows that supports are drawn from: the 68/32 rule's, or at most so many of each class."""
    labels, about = np.array(part.y), part.manifest
    if about.part == "all":
        return self_split(about.dataset, part.ids, labels)
    return np.ones(len(labels), bool) if most is None else cap_pool(about.dataset, part.ids, labels, most)


def _chosen(ids: tuple[str, ...], keep: Bool[Array, " N"] | None) -> tuple[str, ...]:
    return ids if keep is None else tuple(compress(ids, keep))


def _select(part: ImageFeatures, keep: Bool[Array, " N"] | None, dtype: str) -> Labelled:
    rows = slice(None) if keep is None else keep
    name = f"{part.manifest.dataset}/{part.manifest.backbone}/{part.manifest.part}"
    kept = np.flatnonzero(keep) if keep is not None else np.arange(len(part.y))
    X = np.empty((len(kept), part.X.shape[1]), dtype)
    for here in row_blocks(len(kept)):
        X[here] = unit_rows(part.X[kept[here]], name, X.dtype, here.start)
    return Labelled(read_only(X), frozen(np.asarray(part.y[rows], np.int64)))


def _take(rows: Labelled, indices: Int[Array, " n"]) -> Labelled:
    return Labelled(frozen(rows.X[indices]), frozen(rows.y[indices]))


def _check_text(store: Store, text: Manifest) -> None:
    """Raise unless the prototypes are of the pictures' classes, in their order."""
    for part in IMAGE_PARTS:
        if store.has(text.dataset, text.backbone, part):
            named = store.manifest(text.dataset, text.backbone, part).classes
            if named != text.classes:
                raise FeatureError(
                    f"{text.part} of {text.dataset}/{text.backbone} names other classes than {part} does. "
                    "Encode the text again."
                )


def _check_pair(part: ImageFeatures, test: ImageFeatures) -> None:
    name, where = part.manifest.part, f"{part.manifest.dataset}/{part.manifest.backbone}"
    if part.manifest.classes != test.manifest.classes:
        raise FeatureError(f"{name} and test of {where} name different classes. Encode both again.")
    if part.X.shape[1] != test.X.shape[1]:
        raise FeatureError(f"{name} and test of {where} have {part.X.shape[1]} and {test.X.shape[1]} dimensions.")
    shared = set(part.ids) & set(test.ids)
    if shared:
        raise FeatureError(f"{len(shared)} pictures of {where} are in {name} and test (first: {min(shared)}).")
