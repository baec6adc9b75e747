"""The probes of a stratum: what needs no draw, what one draw shows, and how much the ratio varies over draws.

They see test labels: nothing they find may enter a method.
"""

from collections.abc import Callable, Mapping, Sequence

from jaxtyping import Float

from kshot.data.episode import too_thin
from kshot.data.stratum import Prior, Stratum
from kshot.errors import InputError
from kshot.solvers.rows import class_counts, class_means
from kshot.theory.probes.per_class import per_class_row
from kshot.theory.probes.ratio import (
    counterfactual_row,
    headroom_row,
    objectives_row,
    offset_row,
    optimum_row,
    translation_row,
)
from kshot.theory.probes.spread import class_moments, measured_spread, predicted_row
from kshot.types import BALANCED, Array, Evidence

# Of a probe that needs no draw, or that is about all draws.
NO_SEED, NO_SHOTS = -1, 0
EVERYTHING: frozenset[Evidence] = frozenset({"text", "support", "pool", "test"})
# tr(Sigma²) has an unbiased estimate from four pictures on.
LEAST_POOL = 4
Text = Float[Array, "C d"]
# Quantities by `probe.name`.
Quantities = dict[str, float]


def geometry(stratum: Stratum, text: Text) -> Quantities:
    """What needs no draw."""
    pool = stratum.pool
    measured = {
        "offset": offset_row(class_means(pool.X, pool.y, stratum.n_classes), text),
        "headroom": headroom_row(pool, text),
        "stratum": {"pictures": float(len(pool.y) + len(stratum.test.y))},
    }
    if enough(stratum):
        measured["spread"] = {"d_eff": class_moments(pool, text).participation()}
    return named(measured)


def predicted(stratum: Stratum, text: Text, shots: int) -> Quantities:
    """The predicted spread of the James–Stein ratio at a shot count; it needs the scatter of two shots."""
    if shots < 2 or not enough(stratum):
        return {}
    return named({"spread": predicted_row(class_moments(stratum.pool, text), text.shape[1], shots)})


def one_draw(stratum: Stratum, text: Text, shots: int, seed: int, profile: str = BALANCED) -> Quantities:
    """Ratios, offsets and what a translation would change."""
    draw = stratum.episode(shots, seed, Prior(text), profile).reveal(EVERYTHING)
    support, residue, test = draw.support, draw.pool, draw.test
    measured = {
        "objectives": objectives_row(support, residue, test, text),
        "translation": translation_row(support, residue, test, text),
    }
    if shots > 1:
        measured["optimum"] = optimum_row(support, residue, text)
        measured["counterfactual"] = counterfactual_row(support, residue, test, text)
    return named(measured)


def per_class(stratum: Stratum, text: Text, shots: int, seed: int, profile: str = BALANCED) -> Quantities:
    """One ratio a class, on the labels that it is fitted to and on others."""
    draw = stratum.episode(shots, seed, Prior(text), profile).reveal(EVERYTHING)
    return named({"per_class": per_class_row(draw.support, draw.test, text)})


def over_draws(stratum: Stratum, text: Text, shots: int, seeds: Sequence[int], profile: str = BALANCED) -> Quantities:
    """The spread of the James–Stein ratio over draws."""
    if shots < 2 or len(seeds) < 2:
        return {}
    draws = (stratum.episode(shots, seed, None, profile) for seed in seeds)
    supports = [draw.reveal(frozenset({"support"})).support for draw in draws]
    return named({"spread": {"measured SD": measured_spread(supports, text), "draws": float(len(seeds))}})


def measure_stratum(
    stratum: Stratum, text: Text, shots: Sequence[int], seeds: Sequence[int], progress: Callable[[str], None]
) -> dict[tuple[int, int], Quantities]:
    """All probes of one stratum by (shots, seed), at the shot counts that leave five pool images per class."""
    usable = [k for k in shots if not too_thin(stratum.pool.y, stratum.n_classes, k)]
    if len(seeds) < 2:
        raise InputError("the spread of a ratio takes at least two draws. Give more with --seeds.")
    if not usable:
        raise InputError(
            f"none of the shot counts {list(shots)} leaves five pool images per class of {stratum.dataset}. Give "
            "others with --shots."
        )
    progress("geometry of the pool")
    measured = {(NO_SHOTS, NO_SEED): geometry(stratum, text)}
    for k in usable:
        progress(f"draws of K = {k}")
        measured[k, NO_SEED] = predicted(stratum, text, k) | over_draws(stratum, text, k, seeds)
        for seed in seeds:
            measured[k, seed] = one_draw(stratum, text, k, seed) | per_class(stratum, text, k, seed)
    return measured


def enough(stratum: Stratum) -> bool:
    """Whether the pool is large enough for the moments of its classes."""
    return bool(class_counts(stratum.pool.y, stratum.n_classes).min() >= LEAST_POOL)


def named(measured: Mapping[str, Mapping[str, float]]) -> Quantities:
    return {f"{probe}.{name}": float(value) for probe, row in measured.items() for name, value in row.items()}
