"""`Features`: one dataset encoded by one backbone, read from a folder or made of arrays."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.data.catalog import not_encoded
from kshot.data.episode import Episode
from kshot.data.gate import NORM_TOLERANCE
from kshot.data.memory import MemoryStore
from kshot.data.shifts import make_shift
from kshot.data.store import IMAGE_PARTS, Store, as_store
from kshot.data.stratum import Prior, Stratum, load_prior, load_stratum
from kshot.errors import FeatureError, InputError, unknown
from kshot.methods.parameters import refuse_logarithm
from kshot.solvers.labels import class_labels, encode_labels, read_labels
from kshot.solvers.rows import as_numpy, unit_rows
from kshot.types import ENCODER_CONSTANTS, Array, Labelled

logger = logging.getLogger(__name__)
# Fields of a manifest that do not follow from its rows.
ABOUT = ("encoder", "logit_scale", "logit_bias", "simulated", "source", "licence", "protocol", "provenance")
# The tier of a text matrix that comes without a name.
TEXT = "text"


@dataclass(frozen=True, repr=False)
class Features:
    """Pool and test pictures of unit length with their labels, and the text prototypes of every prompt tier; in memory
    (`from_arrays`) or stored in a folder (`load_features`)."""

    dataset: str
    backbone: str
    store: Store
    dtype: str = "float32"

    @classmethod
    def from_arrays(
        cls,
        name: str,
        *,
        pool: tuple[Any, Any],
        test: tuple[Any, Any],
        text: Any = None,
        classes: Sequence[Any] | None = None,
        ids: tuple[Sequence[str], Sequence[str]] | None = None,
        backbone: str = "arrays",
        constants: Mapping[str, float] | None = None,
    ) -> "Features":
        """Take arrays as they are in memory: numpy, torch on any device, whatever has `__array__` or DLPack.

        Parameters
        ----------
        name : str
            The dataset's name; which shots a seed draws depends on it and on the ids.
        pool : (X, y)
            Rows that shots are drawn from, (N, d), and their labels of any kind, as `fit` of a head takes them. Rows
            are scaled to unit length; that is said where it changes them.
        test : (X, y)
            Rows that heads are scored on.
        text : (C, d), or {tier: (C, d)}
            One row per class; without it, heads that read text are undefined.
        classes : C labels
            Names the rows of text in their order, where the labels do not; or, as names, the row numbers that are the
            labels.
        ids : (ids of the pool, ids of the test)
            Names of the pictures that never change. Without them rows are numbered, and another order of the rows
            draws other shots.
        backbone : str
            The encoder's name, to tell features of the same pictures apart.
        constants : numbers by name
            What is known of the encoder: `logit_scale` (100 of CLIP, not its logarithm), and `anchor_scale`, the norm
            of its text embeddings.
        """
        known = {key: _constant(key, value) for key, value in (constants or {}).items()}
        tiers = {} if text is None else dict(text) if isinstance(text, Mapping) else {TEXT: text}
        parts = {"pool": _pair("pool", pool, "(X, y)"), "test": _pair("test", test, "(X, y)")}
        rows = {what: as_numpy(X, what) for what, (X, _) in parts.items()}
        rows |= {f"text {tier}": as_numpy(given, f"text {tier}") for tier, given in tiers.items()}
        _check_sizes(rows)
        labels = {what: read_labels(what, as_numpy(y, what), len(rows[what])) for what, (_, y) in parts.items()}
        unit = _scaled(name, rows)
        n_text = next((len(found) for what, found in unit.items() if what.startswith("text ")), None)
        kinds = class_labels(labels["pool"], n_text, classes)
        names = [str(kind) for kind in kinds.tolist()]
        if kinds.dtype.kind == "U" and labels["pool"].dtype.kind in "iu":
            kinds = np.arange(len(names))
        numbers = {what: encode_labels(what, found, kinds) for what, found in labels.items()}
        _check_every_class(numbers["pool"], kinds)
        _warn_of_shared_rows(name, unit)
        own_ids = () if ids is None else _pair("ids", ids, "(of the pool, of the test)")
        given_ids = dict(zip(parts, own_ids, strict=False))
        about = {"logit_scale": known.get("logit_scale"), "protocol": "arrays"}
        store = MemoryStore()
        for what, y in numbers.items():
            own = [str(one) for one in given_ids.get(what, (f"{what}/{row}" for row in range(len(y))))]
            store.write_images(name, backbone, what, unit[what], y, own, names, **about)
        for tier in tiers:
            norms = np.full(len(names), known["anchor_scale"]) if "anchor_scale" in known else None
            store.write_text(name, backbone, tier, unit[f"text {tier}"], norms, names, **about)
        made = cls(name, backbone, store)
        _ = made.stratum
        return made

    def save(self, folder: Path | str = "features") -> None:
        """Store them in a folder, where `kshot run` and `load_features` find them by name and backbone."""
        target = Store(folder)
        where = self.dataset, self.backbone
        own, stored = (
            [m for m in manifests if (m.dataset, m.backbone) == where]
            for manifests in (self.store.readable(), target.manifests())
        )
        if stored and {m.part: m.sha256 for m in stored} != {m.part: m.sha256 for m in own}:
            raise FeatureError(
                f"{folder} holds other features of {'/'.join(where)}. Delete them, or give another folder."
            )
        for manifest in own:
            about = {name: getattr(manifest, name) for name in ABOUT}
            if manifest.tier:
                text = self.store.text(*where, manifest.tier)
                target.write_text(*where, manifest.tier, text.prototypes, text.norms, manifest.classes, **about)
            else:
                rows = self.store.images(*where, manifest.part)
                target.write_images(*where, manifest.part, rows.X, rows.y, rows.ids, manifest.classes, **about)

    @cached_property
    def stratum(self) -> Stratum:
        return load_stratum(self.store, self.dataset, self.backbone, self.dtype)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        part = next(part for part in IMAGE_PARTS if self.store.has(self.dataset, self.backbone, part))
        return self.store.manifest(self.dataset, self.backbone, part).classes

    @cached_property
    def priors(self) -> dict[str, Prior]:
        where = (self.dataset, self.backbone)
        return {tier: load_prior(self.store, *where, tier, self.dtype) for tier in self.tiers}

    @property
    def tiers(self) -> list[str]:
        return self.store.tiers(self.dataset, self.backbone)

    @property
    def text(self) -> dict[str, Float[Array, "C d"]]:
        return {tier: prior.text for tier, prior in self.priors.items()}

    @property
    def pool(self) -> Labelled:
        return self.stratum.pool

    @property
    def test(self) -> Labelled:
        return self.stratum.test

    def episode(self, shots: int, seed: int = 0, tier: str | None = "dataset") -> Episode:
        """K labelled pictures per class, the same that a study draws; `tier=None` leaves the text away, and of a single
        tier the name need not be given."""
        if tier == "dataset" and len(self.tiers) == 1:
            (tier,) = self.tiers
        if tier is not None and tier not in self.priors:
            raise FeatureError(unknown("tier", tier, self.priors, "Give one of them, or tier=None."))
        most = int(np.bincount(self.pool.y, minlength=len(self.classes)).min())
        if not 1 <= shots <= most:
            raise InputError(f"shots is {shots}; allowed are 1 to {most}, the pool pictures of the smallest class.")
        return self.stratum.episode(int(shots), int(seed), None if tier is None else self.priors[tier])

    def __repr__(self) -> str:
        tiers, pool, test = ", ".join(self.tiers) or "none", len(self.pool.y), len(self.test.y)
        return (
            f"{self.dataset}/{self.backbone}: {len(self.classes)} classes, {pool} pool and {test} test "
            f"pictures in {self.pool.X.shape[1]} dimensions, tiers {tiers}"
        )


def load_features(
    dataset: str, backbone: str, *, features: Path | str = "features", dtype: str = "float32"
) -> Features:
    """Features of the folder `features`, or those that come with the package; verified and of unit length. A shift is
    made of its two datasets first."""
    store = as_store(features)
    make_shift(dataset, backbone, store)
    known = {(m.dataset, m.backbone) for m in store.readable()}
    if (dataset, backbone) not in known:
        names = [f"{name}/{encoder}" for name, encoder in known]
        named = not_encoded([dataset], [backbone], store.root)
        next_step = "See `kshot ls features`."
        raise FeatureError(named or unknown("features", f"{dataset}/{backbone}", names, next_step))
    found = Features(dataset, backbone, store, dtype)
    # Read now, so that a damaged file is an error here and not later.
    _ = found.stratum, found.priors
    return found


def _pair(what: str, given: Any, form: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"{what} must be a pair {form}, not {type(given).__name__}.")
    return given[0], given[1]


def _constant(name: str, value: Any) -> float:
    if name not in ENCODER_CONSTANTS:
        raise InputError(unknown("constant", name, ENCODER_CONSTANTS, "Heads use no other of an encoder."))
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < np.inf:
        raise InputError(f"constants: {name} must be a number above 0, not {value!r}.")
    refuse_logarithm(name, number)
    return number


def _check_sizes(rows: Mapping[str, Array]) -> None:
    """Raise unless all have two dimensions and the pool's columns, and all texts the same number of rows."""
    for what, own in rows.items():
        if own.ndim != 2:
            raise InputError(f"{what} must have two dimensions (rows, features), not shape {own.shape}.")
        if own.shape[1] != rows["pool"].shape[1]:
            dims = f"{own.shape[1]} dimensions, pool has {rows['pool'].shape[1]}"
            raise InputError(f"{what} has {dims}. Give rows of the same encoder.")
    counts = {what: len(own) for what, own in rows.items() if what.startswith("text ")}
    if len(set(counts.values())) > 1:
        raise InputError(f"rows of text differ: {counts}. Give one row per class in every tier.")


def _check_every_class(y: Array, kinds: Array) -> None:
    absent = np.setdiff1d(np.arange(len(kinds)), y)
    if len(absent):
        raise InputError(
            f"pool has no row of {len(absent)} of {len(kinds)} classes, the first {kinds.tolist()[absent[0]]!r}. "
            "Give rows of every class, or leave the class out of text, classes and test."
        )


def _warn_of_shared_rows(name: str, unit: Mapping[str, Array]) -> None:
    pool = {row.tobytes() for row in unit["pool"]}
    count = sum(row.tobytes() in pool for row in unit["test"])
    if count:
        logger.warning(f"{name}: {count} of {len(unit['test'])} rows of test are in pool, too; heads may know them.")


def _scaled(name: str, rows: Mapping[str, Array]) -> dict[str, Array]:
    """Scale rows to unit length and log where that changes them; rows that have it stay bit for bit as they are."""
    found, spans = {}, []
    for what, given in rows.items():
        unit = unit_rows(given, what)
        # By the largest numbers: squares may be too large or too small to add.
        largest = [np.abs(X.astype(np.float64)).max(axis=1) for X in (given, unit)]
        norms = largest[0] / largest[1]
        is_unit = np.abs(norms - 1).max(initial=0) <= NORM_TOLERANCE
        found[what] = given if is_unit and given.dtype in (np.float16, np.float32, np.float64) else unit
        if not is_unit:
            spans.append(f"{what} {norms.min():.3g} to {norms.max():.3g}")
    if spans:
        logger.warning(f"{name}: rows are scaled to unit length; their lengths were {', '.join(spans)}.")
    return found
