"""Stored features of one dataset and backbone, as somebody at a keyboard wants them."""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float

from kshot.data.catalog import not_encoded
from kshot.data.episode import Episode
from kshot.data.shifts import make_shift
from kshot.data.store import Store
from kshot.data.stratum import Prior, Stratum, load_prior, load_stratum
from kshot.errors import FeatureError, unknown
from kshot.types import Array, Labelled


@dataclass(frozen=True, repr=False)
class StoredFeatures:
    """Pool and test pictures with their labels, and the text prototypes of every prompt tier that is stored."""

    stratum: Stratum
    classes: tuple[str, ...]
    priors: dict[str, Prior]

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
        """K labelled pictures per class, the same that a study draws; `tier=None` leaves the text away."""
        if tier is not None and tier not in self.priors:
            raise FeatureError(unknown("tier", tier, self.priors, "Give one of them, or tier=None."))
        return self.stratum.episode(shots, seed, None if tier is None else self.priors[tier])

    def __repr__(self) -> str:
        tiers, pool, test = ", ".join(self.priors) or "none", len(self.pool.y), len(self.test.y)
        return (
            f"{self.stratum.dataset}/{self.stratum.backbone}: {len(self.classes)} classes, {pool} pool and {test} test "
            f"pictures in {self.pool.X.shape[1]} dimensions, tiers {tiers}"
        )


def load_features(
    dataset: str, backbone: str, *, features: Path | str = "features", dtype: str = "float32"
) -> StoredFeatures:
    """Features of the folder `features`, or those that come with the package; verified and of unit length. A shift is
    made of its two datasets first."""
    store = Store(features)
    make_shift(dataset, backbone, store)
    known = {(m.dataset, m.backbone) for m in store.readable()}
    if (dataset, backbone) not in known:
        names = [f"{name}/{encoder}" for name, encoder in known]
        named = not_encoded([dataset], [backbone], store.root)
        next_step = "See `kshot ls features`."
        raise FeatureError(named or unknown("features", f"{dataset}/{backbone}", names, next_step))
    stratum = load_stratum(store, dataset, backbone, dtype)
    tiers = sorted(store.tiers(dataset, backbone))
    part = "all" if store.has(dataset, backbone, "all") else "pool"
    return StoredFeatures(
        stratum,
        tuple(store.images(dataset, backbone, part).manifest.classes),
        {tier: load_prior(store, dataset, backbone, tier, dtype) for tier in tiers},
    )
