"""All probes of one (dataset, backbone, tier), as tables."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from kshot.diagnose.agreement import optimum_row
from kshot.diagnose.counterfactual import counterfactual_row
from kshot.diagnose.headroom import headroom_row
from kshot.diagnose.offset import offset_row
from kshot.diagnose.per_class import per_class_row
from kshot.diagnose.precision import precision_row
from kshot.diagnose.section import Row, Section
from kshot.diagnose.translation import translation_rows
from kshot.episodes.draw import too_thin
from kshot.episodes.guard import Revealed
from kshot.episodes.stratum import Stratum
from kshot.errors import InputError
from kshot.solvers.rows import class_means
from kshot.types import Array, Evidence, Labelled

EVERYTHING: frozenset[Evidence] = frozenset({"text", "support", "pool", "test"})


def diagnose_stratum(
    stratum: Stratum,
    text: Float[Array, "C d"],
    shots: Sequence[int],
    seeds: Sequence[int],
    progress: Callable[[str], None],
) -> list[Section]:
    """Probes that need no draw once, the others at each K, means over seeds. They see test labels: no method."""
    usable = [k for k in shots if k >= 2 and not too_thin(stratum.pool.y, stratum.n_classes, k)]
    if len(seeds) < 2:
        raise InputError("the spread of a ratio takes at least two draws. Give more with --seeds.")
    if not usable:
        raise InputError(
            f"none of the shot counts {list(shots)} is at least 2 and leaves five pool images per class of "
            f"{stratum.dataset}. Give others with --shots."
        )
    progress("geometry of the pool")
    pool_means = class_means(stratum.pool.X, stratum.pool.y, stratum.n_classes)
    sections = [
        Section("Common offset", [offset_row(pool_means, text)], OFFSET_NOTE),
        Section("Headroom over the blend path", [headroom_row(stratum.pool, text)], HEADROOM_NOTE),
    ]
    tables = [Section(title, [], note) for title, _, note in PROBES]
    for k in usable:
        episodes = [stratum.episode(k, seed, text).reveal(EVERYTHING) for seed in seeds]
        for table, (title, probe, _) in zip(tables, PROBES, strict=True):
            progress(f"{title}, K = {k}")
            table.rows.append({"K": k} | probe(episodes))
    return sections + tables


def _agreement(episodes: list[Revealed]) -> Row:
    return _mean([optimum_row(e.support, e.pool, e.text) for e in episodes])


def _precision(episodes: list[Revealed]) -> Row:
    pool = Labelled(
        *(np.concatenate(parts) for parts in zip(episodes[0].support, episodes[0].pool, strict=True))
    )
    shots = len(episodes[0].support.y) // len(episodes[0].text)
    return precision_row(pool, episodes[0].text, [e.support for e in episodes], shots)


def _translation(episodes: list[Revealed]) -> Row:
    """One column per step: the change in points."""
    rows: list[Row] = []
    for e in episodes:
        means, population = (class_means(part.X, part.y, len(e.text)) for part in (e.support, e.pool))
        steps = translation_rows(e.test, means, e.text, population)
        rows.append({f"a = {step['a']:+.2f}": step["change"] for step in steps})
    return _mean(rows)


def _counterfactual(episodes: list[Revealed]) -> Row:
    return counterfactual_row([(e.support, e.pool) for e in episodes], episodes[0].test, episodes[0].text)


def _per_class(episodes: list[Revealed]) -> Row:
    return _mean([per_class_row(e.support, e.test, e.text) for e in episodes])


def _mean(rows: list[Row]) -> Row:
    return {name: sum(float(row[name]) for row in rows) / len(rows) for name in rows[0]}


PROBES: tuple[tuple[str, Callable[[list[Revealed]], Row], str], ...] = (
    ("James–Stein against the population's λ*", _agreement, "λ* uses the pool without the support."),
    (
        "Spread of the James–Stein ratio over draws",
        _precision,
        "Medians over classes; predicted for the pool's covariance, and as if it were isotropic. Draws of K from "
        "n pool pictures per class overlap, which lowers the measured SD by about sqrt(1 − K/n).",
    ),
    (
        "Translating every prototype by a·Delta",
        _translation,
        "Change of accuracy in points, at the oracle ratio.",
    ),
    (
        "James–Stein without the common offset",
        _counterfactual,
        "Points below the oracle ratio, with the text as it is and with Delta subtracted.",
    ),
    (
        "One ratio per class",
        _per_class,
        "Accuracy of the best single ratio, and points gained over it by one ratio per class: fitted and "
        "scored on the same labels, on different halves, and chosen by leave-one-out.",
    ),
)
OFFSET_NOTE = (
    "Share of the squared text–image distance that all classes have in common; in generic position the "
    "squared cosines are about 1/d."
)
HEADROOM_NOTE = "Means over class pairs, Gaussian classes with the pool's OAS covariance; errors in per cent."
