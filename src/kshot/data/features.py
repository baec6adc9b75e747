"""`Features`: one dataset encoded by one backbone, read from a folder or made of arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.data.arrays import hold_arrays
from kshot.data.catalog import not_encoded
from kshot.data.episode import Episode
from kshot.data.memory import MemoryStore
from kshot.data.store import IMAGE_PARTS, Store, as_store
from kshot.data.stratum import Prior, Stratum, check_parts, load_prior, load_stratum
from kshot.errors import FeatureError, InputError, unknown
from kshot.types import Array, Labelled

# Fields of a manifest that do not follow from its rows.
ABOUT = ("encoder", "logit_scale", "logit_bias", "simulated", "source", "licence", "protocol", "provenance")


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
        test: tuple[Any, Any] | None = None,
        val: tuple[Any, Any] | None = None,
        text: Any = None,
        views: Mapping[str, Any] | None = None,
        classes: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
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
            are scaled to unit length, in the precision they have; that is said where it changes them.
        test : (X, y)
            Rows that heads are scored on. Without it the pool is divided by the protocol: of every class 68 % of the
            ids are the pool, the rest the test.
        val : (X, y)
            Official validation rows, for heads that look at them.
        text : (C, d), (C, P, d), {class: (d,)}, a DataFrame, or {tier: any of these}
            One row per class, or P prompts per class, whose unit rows are averaged; without it, heads that read text
            are undefined. Labels that are names need `classes` or text that carries its names.
        views : {recipe: (E, N, d)}
            Augmented views of the pool's rows, of the recipe tip or clap.
        classes : C labels
            Names the rows of text in their order, where the labels do not; or, as names, the row numbers that are the
            labels.
        ids : (ids of the pool, of the test, of val), or the ids of the undivided pool
            Names of the pictures that never change. Without them rows are numbered, and another order of the rows
            draws other shots.
        backbone : str
            The encoder's name, to tell features of the same pictures apart.
        constants : numbers by name
            What is known of the encoder: `logit_scale` (100 of CLIP, not its logarithm), and `anchor_scale`, the norm
            of its text embeddings.
        """
        store, where = MemoryStore(), (name, backbone)
        parts = {"all": pool} if test is None else {"pool": pool, "test": test}
        if val is not None:
            if test is None:
                raise InputError("val needs a test: an undivided pool is split into pool and test only.")
            parts["val"] = val
        hold_arrays(store, where, parts, text=text, views=views or {}, classes=classes, ids=ids, constants=constants)
        check_parts(store, *where)
        return cls(name, backbone, store)

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
    """Features of the folder `features`, or those that come with the package; verified and of unit length.

    Examples
    --------
    >>> import kshot
    >>> features = kshot.load_features("tuxpaint", "lite0")
    >>> features.test.X.shape
    (114, 1280)
    """
    store = as_store(features)
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
