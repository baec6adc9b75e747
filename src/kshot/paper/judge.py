"""Judge every claim against a published number or another run, by the noise that other draws would bring."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from kshot.paper.arms import MATRIX, Arms, Observations, absent, side_by_side
from kshot.paper.claims import Claim, Rules
from kshot.paper.evaluate import Evaluator
from kshot.paper.formulas import Figure
from kshot.paper.noise import LEAST_DRAWS, Noise, Resamples, noise, resamples
from kshot.paper.verdict import (
    AGREES,
    CANNOT_TELL,
    CLAIM_LEVEL,
    CORRELATED,
    DIFFERS,
    NOT_COMPUTED,
    Comparison,
    JudgedClaims,
)
from kshot.stats.scores import normal_score
from kshot.types import CELL, Array

# "About" a figure: within a tenth of it. HOSO's results carry this band of rounding (paper, Sec. 5.5).
ABOUT, HOSO_BAND = 0.1, 0.5
# Figures that count what is in the records.
OF_RECORDS = ("cells", "strata", "datasets")
# What would matter: a point of accuracy, a tenth of an effect or of a correlation.
POINT, TENTH = 1.0, 0.1
# What no draw changes may differ by this much through rounding.
ROUNDING = 0.1
# The correlation of draws of the same number from which they are the same draws.
SAME_DRAWS = 0.5
HOSO = {"hoso", "hoso+views"}
NULLS = 2_000
# A score beyond this counts as this in the test over all claims, which is not about single ones.
CAPPED = 3.0


def judge(
    claims: Sequence[Claim], rules: Rules, arms: Arms, against: Arms | None = None, other: str = ""
) -> JudgedClaims:
    """Judge these claims, in their order: against what was printed, or against another run."""
    lacking = (absent(arms[MATRIX], against[MATRIX]), absent(against[MATRIX], arms[MATRIX])) if against else ([], [])
    if against:
        arms, against = side_by_side(arms, against)
    both = [run for run in (arms, against) if run]
    plans = [resamples(run) for run in both]
    runs = [Evaluator(claims, rules, plan.of(run)) for plan, run in zip(plans, both, strict=True)]
    figures = [[run.answer(claim) for run in runs] for claim in claims]
    paired = against is not None and plans[0].draws == plans[1].draws and _same_draws(arms[MATRIX], against[MATRIX])
    known = [i for i in range(len(claims)) if all(figure.known for figure in figures[i])]
    found = _difference_noise(
        [claims[i].id for i in known],
        [[figures[i][run] for i in known] for run in range(len(runs))],
        plans,
        rules.paper["datasets"],
        paired,
    )
    ours = np.array([float(figures[i][0].values[0]) for i in known])
    theirs = np.array([claims[i].value if against is None else float(figures[i][1].values[0]) for i in known])
    difference = ours - theirs
    if against is None:
        difference = np.array([gap(claims[i], value) for i, value in zip(known, ours, strict=True)])
    rounding = [
        rounding_variance(claims[i], exact, against) for i, exact in zip(known, found.exact.tolist(), strict=True)
    ]
    spread = np.sqrt(found.variance + rounding)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(spread > 0, normal_score(difference / np.where(spread > 0, spread, 1), found.freedom), np.nan)
    timeless = np.array([_timeless(claims[i]) for i in known], bool)
    tested = ~found.exact & np.isfinite(score) & timeless
    nulls = _nulls(found.moved[:, tested])
    level = float(np.quantile(np.abs(_less_correlated(nulls)).max(axis=1), 1 - CLAIM_LEVEL)) if tested.any() else np.inf
    capped = lambda scores: np.minimum(scores**2, CAPPED**2).mean(axis=-1)  # noqa: E731
    together = float((1 + (capped(nulls) >= capped(score[tested])).sum()) / (1 + len(nulls))) if tested.any() else 1.0
    place = {i: j for j, i in enumerate(known)}
    lines = []
    for i, claim in enumerate(claims):
        rule, figure, j = rules.rule(claim), figures[i][0], place.get(i)
        if j is None:
            other_value = claim.value if against is None else float(figures[i][1].values[0])
            partly = [f"{run.partly[claim.id]} are there: " for run in runs if claim.id in run.partly]
            command = rule.needs or rule.command or rules.commands.get(claim.arm, "kshot run paper")
            lines.append(Comparison(claim, figure, other_value, NOT_COMPUTED, "".join(partly[:1]) + command))
            continue
        verdict, why, value, other_value = AGREES, "", float(ours[j]), float(theirs[j])
        if not timeless[j]:
            verdict, why = CANNOT_TELL, "seconds are those of another machine"
        elif found.exact[j] and any(lacking) and rule.figure in OF_RECORDS:
            verdict, why = CANNOT_TELL, "the runs do not have the same cells"
        elif found.exact[j]:
            agree = holds(claim, value) if against is None else _equal(value, other_value, _printed_step(claim))
            verdict, why = (AGREES, "") if agree else (DIFFERS, "no draw changes it")
        elif not np.isfinite(score[j]):
            verdict, why = CANNOT_TELL, f"its noise is unknown: fewer than {LEAST_DRAWS} draws"
        elif abs(score[j]) > level:
            verdict = DIFFERS
        elif level * spread[j] > matters(claim, other_value):
            verdict, why = CANNOT_TELL, f"chance alone moves it by up to {level * spread[j]:.2g}"
        if verdict == DIFFERS and against is None and rules.contradiction(claim):
            verdict, why = CANNOT_TELL, f"the paper contradicts itself: {rules.contradiction(claim)}"
        if found.borrowed[j]:
            why = f"{why}; its noise is that of other strata".removeprefix("; ")
        measured = (float(difference[j]), float(score[j]), float(spread[j]), float(found.freedom[j]))
        lines.append(Comparison(claim, figure, other_value, verdict, why, *measured))
    return JudgedClaims(
        lines,
        level,
        int(tested.sum()),
        together,
        paired,
        other or "the paper",
        arms[MATRIX].panel.origin.simulated,
        nulls=nulls,
        lacking=lacking,
    )


def _same_draws(ours: Observations, theirs: Observations) -> bool:
    """Whether draws of the same number are the same draws: most of what varies with them varies alike."""
    keys = [dict(zip(run.panel.cell_keys(CELL), range(len(run.panel)), strict=True)) for run in (ours, theirs)]
    both = [key for key in keys[0] if key in keys[1]]
    cell = np.unique([str((*key[:4], *key[5:])) for key in both], return_inverse=True)[1]
    products = np.zeros(3)
    for method in ours.panel.methods:
        if method in theirs.panel.methods:
            x, y = (
                run.panel.column(method)[[places[key] for key in both]]
                for run, places in zip((ours, theirs), keys, strict=True)
            )
            known = np.isfinite(x) & np.isfinite(y)
            x, y = (v[known] - _mean_of(v[known], cell[known]) for v in (x, y))
            products += (x @ y, x @ x, y @ y)
    return bool(products[1] * products[2] > 0 and products[0] > SAME_DRAWS * np.sqrt(products[1] * products[2]))


def _mean_of(values: Float[Array, " N"], group: Array) -> Float[Array, " N"]:
    return (np.bincount(group, values) / np.maximum(np.bincount(group), 1))[group]


def _difference_noise(
    ids: Sequence[str],
    figures: Sequence[Sequence[Figure]],
    plans: Sequence[Resamples],
    datasets: Sequence[str],
    paired: bool,
) -> Noise:
    """Noise of ours minus theirs: twice ours where theirs is a printed number, of the pairs where draws are shared, of
    both runs otherwise."""
    if len(figures) == 1:
        own = noise(ids, figures[0], plans[0], datasets)
        return Noise(2 * own.variance, own.freedom, own.moved, own.exact, own.borrowed)
    if paired:
        both = [
            Figure(a.values - b.values, draws=max(a.draws, b.draws), added=a.added + b.added)
            for a, b in zip(*figures, strict=True)
        ]
        return noise(ids, both, plans[0], datasets)
    a, b = (noise(ids, run, plan, datasets) for run, plan in zip(figures, plans, strict=True))
    variance = a.variance + b.variance
    safe = np.where(variance > 0, variance, 1)
    freedom = safe**2 / np.maximum(a.variance**2 / a.freedom + b.variance**2 / b.freedom, 1e-300)
    freedom = np.where(variance > 0, freedom, a.freedom + b.freedom)
    moved = np.concatenate([a.moved * np.sqrt(a.variance / safe), b.moved * np.sqrt(b.variance / safe)])
    return Noise(variance, freedom, np.sqrt(2) * moved, a.exact & b.exact, a.borrowed | b.borrowed)


def _nulls(moved: Float[Array, "B c"]) -> Float[Array, "s c"]:
    """Normal scores of comparisons without fault, correlated as the resampled claims are."""
    mixed = np.random.default_rng(0).normal(size=(NULLS, len(moved))) @ moved
    size = mixed.std(axis=0)
    return mixed / np.where(size > 0, size, 1)


def _less_correlated(nulls: Float[Array, "s c"]) -> Float[Array, "s c"]:
    own = np.random.default_rng(1).normal(size=nulls.shape)
    return np.sqrt(CORRELATED) * nulls + np.sqrt(1 - CORRELATED) * own


def rounding_variance(claim: Claim, exact: bool, against: Arms | None) -> float:
    """Variance of a figure that was rounded when printed; a count moves in whole steps in any case."""
    step = claim.tolerance if against is None else 0.5 if claim.unit == "count" and not exact else 0.0
    return 0.0 if exact else step**2 / 3


def _timeless(claim: Claim) -> bool:
    return claim.kind != "cost"


def _equal(a: float, b: float, step: float = 0.0) -> bool:
    return abs(a - b) <= max(1e-6 * max(1.0, abs(b)), step)


def _printed_step(claim: Claim) -> float:
    """What an accuracy on which no draw has an influence may move by the precision of arithmetic: a picture or two."""
    return max(claim.tolerance, ROUNDING) if claim.unit in ("percent", "points") else 0.0


def holds(claim: Claim, ours: float) -> bool:
    """Whether ours is the printed number to its rounding, or meets the stated relation."""
    strict = {"<": ours < claim.value, ">": ours > claim.value, "abs<": abs(ours) < claim.value}
    return bool(strict.get(claim.relation, abs(gap(claim, ours)) <= claim.tolerance * (1 + 1e-9)))


def gap(claim: Claim, ours: float) -> float:
    """How far ours is from what the claim admits."""
    value = claim.value
    if claim.relation.startswith("abs"):
        return max(0.0, abs(ours) - value)
    if claim.relation in ("<", "<="):
        return max(0.0, ours - value)
    if claim.relation in (">", ">="):
        return min(0.0, ours - value)
    band = ABOUT * abs(value) if claim.relation == "~" else 0.0
    methods = claim.conditions["method"].values if "method" in claim.conditions else ()
    if claim.unit in ("points", "percent") and HOSO & set(methods):
        band = max(band, HOSO_BAND)
    return float(np.sign(ours - value) * max(0.0, abs(ours - value) - band))


def matters(claim: Claim, theirs: float) -> float:
    """The smallest difference that a reader would care about."""
    if claim.unit == "percent":
        return POINT
    if claim.unit in ("points", "count"):
        return max(POINT, TENTH * abs(theirs))
    return TENTH if claim.unit == "correlation" else TENTH * abs(theirs)
