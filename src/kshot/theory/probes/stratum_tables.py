"""All probes of one (dataset, backbone, tier), as tables."""

from collections.abc import Callable, Sequence

from jaxtyping import Float

from kshot.data.draw import too_thin
from kshot.data.stratum import Prior, Stratum
from kshot.errors import InputError
from kshot.solvers.rows import class_means
from kshot.theory.probes.draw_probes import DRAW_PROBES, EVERYTHING
from kshot.theory.probes.headroom import headroom_row
from kshot.theory.probes.offset import offset_row
from kshot.theory.probes.section import Row, Section
from kshot.theory.probes.spread import spread_row
from kshot.types import Array

OFFSET_NOTE = (
    "Share of the squared text–image distance that all classes have in common; in generic position the "
    "squared cosines are about 1/d."
)
HEADROOM_NOTE = "Means over class pairs, Gaussian classes with the pool's OAS covariance; errors in per cent."
SPREAD_TITLE = "Spread of the James–Stein ratio over draws"
SPREAD_NOTE = (
    "Medians over classes; predicted for the pool's covariance, and as if it were isotropic. Draws of K from n pool "
    "pictures per class overlap, which lowers the measured SD by about sqrt(1 − K/n)."
)


def diagnose_stratum(
    stratum: Stratum,
    text: Float[Array, "C d"],
    shots: Sequence[int],
    seeds: Sequence[int],
    progress: Callable[[str], None],
) -> list[Section]:
    """Probes that need no draw once, the others at each K, means over seeds."""
    usable = [k for k in shots if not too_thin(stratum.pool.y, stratum.n_classes, k)]
    if len(seeds) < 2:
        raise InputError("the spread of a ratio takes at least two draws. Give more with --seeds.")
    if not usable:
        raise InputError(
            f"none of the shot counts {list(shots)} leaves five pool images per class of {stratum.dataset}. Give "
            "others with --shots."
        )
    progress("geometry of the pool")
    pool_means = class_means(stratum.pool.X, stratum.pool.y, stratum.n_classes)
    sections = [
        Section("Common offset", [offset_row(pool_means, text)], OFFSET_NOTE),
        Section("Headroom over the blend path", [headroom_row(stratum.pool, text)], HEADROOM_NOTE),
    ]
    spread = Section(SPREAD_TITLE, [], SPREAD_NOTE)
    tables = {key: Section(probe.title, [], probe.note) for key, probe in DRAW_PROBES.items()}
    for k in usable:
        draws = [stratum.episode(k, seed, Prior(text)).reveal(EVERYTHING) for seed in seeds]
        if k > 1:
            progress(f"{SPREAD_TITLE}, K = {k}")
            spread.rows.append(spread_row(stratum.pool, text, [draw.support for draw in draws], k))
        for key, probe in DRAW_PROBES.items():
            if k >= probe.least_shots:
                progress(f"{probe.title}, K = {k}")
                tables[key].rows.append({"K": k} | probe.of_means(_mean([probe.measure(draw) for draw in draws])))
    return [section for section in (*sections, spread, *tables.values()) if section.rows]


def _mean(rows: list[Row]) -> Row:
    return {name: sum(float(row[name]) for row in rows) / len(rows) for name in rows[0]}
