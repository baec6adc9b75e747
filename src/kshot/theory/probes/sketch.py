"""A stratum's prototypes in two dimensions, for figures of the geometry."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from kshot.data.episode import too_thin
from kshot.data.store import IMAGE_PARTS, Store
from kshot.data.stratum import Stratum, load_prior, load_stratum
from kshot.solvers.rows import class_means, squared_norms
from kshot.types import Array, Sketch

MOST_CLASSES = 40


def sketches(
    store: Store,
    strata: Iterable[tuple[str, str, str]],
    shots: list[int],
    seed: int,
    supports: Callable[[str], Mapping[tuple[int, int], Sequence[str]]] = lambda dataset: {},
) -> Iterator[Sketch]:
    """One sketch per (dataset, backbone, tier) whose features are stored; `supports` gives a dataset's shots where
    somebody else drew them."""
    tiers: dict[tuple[str, str], list[str]] = {}
    for dataset, backbone, tier in sorted(strata):
        if tier in store.tiers(dataset, backbone) and any(store.has(dataset, backbone, part) for part in IMAGE_PARTS):
            tiers.setdefault((dataset, backbone), []).append(tier)
    for (dataset, backbone), names in tiers.items():
        stratum = load_stratum(store, dataset, backbone, supports=supports(dataset))
        for tier in names:
            classes = store.text(dataset, backbone, tier).manifest.classes
            text = load_prior(store, dataset, backbone, tier).text
            yield sketch(stratum, text, classes, tier, shots, seed)


def sketch(
    stratum: Stratum, text: Float[Array, "C d"], names: tuple[str, ...], tier: str, shots: list[int], seed: int
) -> Sketch:
    """PCA of class means and text prototypes; at most 40 classes, evenly spaced, are kept."""
    image = class_means(stratum.pool.X, stratum.pool.y, stratum.n_classes)
    both = np.concatenate([image, text]).astype(float)
    centre = both.mean(axis=0)
    scale, directions = _principal(both - centre)
    kept = np.unique(np.linspace(0, len(text) - 1, min(len(text), MOST_CLASSES)).astype(int))

    def flat(rows: Float[Array, "C d"]) -> Float[Array, "k 2"]:
        return (rows[kept].astype(float) - centre) @ directions.T

    def support_means(k: int) -> Float[Array, "C d"]:
        support = stratum.episode(k, seed, None).reveal(frozenset({"support"})).support
        return class_means(support.X, support.y, stratum.n_classes)

    drawable = [k for k in shots if not too_thin(stratum.pool.y, stratum.n_classes, k)]
    return Sketch(
        dataset=stratum.dataset,
        backbone=stratum.backbone,
        tier=tier,
        names=tuple(names[index] for index in kept),
        text=flat(text),
        image=flat(image),
        support={k: flat(support_means(k)) for k in drawable},
        seed=seed,
        classes=len(text),
        explained=float((scale**2).sum() / squared_norms(both - centre).sum()),
    )


def _principal(rows: Float[Array, "N d"]) -> tuple[Float[Array, " 2"], Float[Array, "2 d"]]:
    """The two largest singular values and their directions; the largest entry of a direction is positive."""
    from scipy.sparse.linalg import svds

    # Any start that is not orthogonal to the answer will do; a vector of ones is, because the rows are centred.
    start = np.random.default_rng(0).normal(size=min(rows.shape))
    _, scale, directions = svds(rows, k=2, v0=start)
    order = np.argsort(-scale)
    scale, directions = np.asarray(scale)[order], np.asarray(directions)[order]
    largest = directions[np.arange(2), np.abs(directions).argmax(axis=1)]
    return scale, directions * np.sign(largest)[:, None]
