"""The checks that stored features pass before they are trusted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kshot.data.catalog import BAND_BACKBONE, BAND_TIER, backbones, datasets
from kshot.data.store import Store
from kshot.data.stratum import Stratum, load_prior, load_stratum
from kshot.errors import KshotError
from kshot.types import Array

NORM_TOLERANCE = 2e-3  # what float16 storage does to a unit vector
MOST_SCORES = 1 << 24


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One check and its outcome in a sentence."""

    passed: bool
    what: str


def check_stratum(store: Store, dataset: str, backbone: str) -> Iterator[GateCheck]:
    """All checks of one (dataset, backbone); a damaged file ends them."""
    manifests = [m for m in store.readable() if (m.dataset, m.backbone) == (dataset, backbone)]
    try:
        for manifest in manifests:
            store.verify(manifest)
        yield GateCheck(True, f"{len(manifests)} file(s) match their sha256")
        yield from _check_images(store, dataset, backbone, [m.part for m in manifests])
        stratum = load_stratum(store, dataset, backbone)
        yield GateCheck(True, f"pool of {len(stratum.pool.y)} and test of {len(stratum.test.y)} are disjoint")
        for tier in store.tiers(dataset, backbone):
            yield _judged(stratum, load_prior(store, dataset, backbone, tier).text, tier)
    except KshotError as error:
        yield GateCheck(False, str(error))


def failed_gates(store: Store, strata: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Strata whose zero-shot accuracy lies outside the published band, in words; generated numbers have none."""
    failed = {}
    for dataset, backbone in strata:
        entry = datasets().get(dataset)
        known = entry is not None and entry.band is not None and backbone == BAND_BACKBONE
        if not known or not store.has(dataset, backbone, f"text-{BAND_TIER}"):
            continue
        stratum = load_stratum(store, dataset, backbone)
        if not stratum.simulated:
            gate = _judged(stratum, load_prior(store, dataset, backbone, BAND_TIER).text, BAND_TIER)
            failed |= {} if gate.passed else {(dataset, backbone): f"{dataset} with {backbone}: {gate.what}"}
    return failed


def _judged(stratum: Stratum, text: Float[Array, "C d"], tier: str) -> GateCheck:
    """Compare zero-shot accuracy with the published band, which exists for one backbone and tier."""
    # In blocks: of 100,000 classes all scores at once would take tens of gigabytes.
    block = max(1, MOST_SCORES // len(text))
    starts = range(0, len(stratum.test.y), block)
    best = np.concatenate([(stratum.test.X[i : i + block] @ text.T).argmax(axis=1) for i in starts])
    accuracy = 100 * float(np.mean(best == stratum.test.y))
    entry, said = datasets().get(stratum.dataset), f"zero-shot with tier {tier}: {accuracy:.1f} %"
    if entry is None or entry.band is None or (stratum.backbone, tier) != (BAND_BACKBONE, BAND_TIER):
        return GateCheck(True, f"{said} (no published band)")
    low, high = entry.band
    return GateCheck(low <= accuracy <= high, f"{said}, published {low}–{high} %")


def _check_images(store: Store, dataset: str, backbone: str, parts: list[str]) -> Iterator[GateCheck]:
    entry, encoder = datasets().get(dataset), backbones().get(backbone)
    for part in parts:
        if part.startswith("text-"):
            continue
        images = store.images(dataset, backbone, part)
        manifest = images.manifest
        shape = (manifest.rows, manifest.dim)
        yield GateCheck(images.X.shape == shape == (len(images.y), images.X.shape[1]), f"{part} has shape {shape}")
        norms = np.linalg.norm(np.asarray(images.X, np.float32), axis=1)
        worst = float(np.abs(norms - 1).max())
        unit = bool(worst <= NORM_TOLERANCE)
        mend = "" if unit else "; write X / np.linalg.norm(X, axis=1, keepdims=True), or use `kshot import`"
        yield GateCheck(unit, f"{part} rows have unit length (worst off by {worst:.1e}){mend}")
        top = len(manifest.classes) - 1
        inside = images.y.min() >= 0 and images.y.max() <= top
        yield GateCheck(bool(inside), f"{part} labels lie in 0..{top}")
        if entry is not None:
            known = len(manifest.classes) == entry.classes
            yield GateCheck(known, f"{part} names {len(manifest.classes)} classes, published {entry.classes}")
        if encoder is not None:
            fits = manifest.dim == encoder.dim
            yield GateCheck(fits, f"{part} has {manifest.dim} dimensions, {backbone} gives {encoder.dim}")
