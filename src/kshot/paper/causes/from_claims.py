"""The cause where the other side is printed numbers: the cells whose trace in all claims is like their differences."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from jaxtyping import Float

from kshot.paper.arms import MATRIX, Arms, Observations
from kshot.paper.causes.cause import Cause
from kshot.paper.causes.shifts import NARROWER
from kshot.paper.claims import Claim, Rules
from kshot.paper.evaluate import Evaluator
from kshot.paper.verdict import CORRELATED, DIFFERS, JudgedClaims
from kshot.types import Array

# What a cause must explain of printed claims, and how many are tried at once.
PRINTED_GAIN, BLOCK = 30.0, 64


def explained_by_claims(judged: JudgedClaims, rules: Rules, arms: Arms) -> JudgedClaims:
    """The cause where the other side is printed numbers only: the shift of some cells whose trace in all claims is most
    like their differences."""
    observed = arms[MATRIX]
    chosen = [x for x in judged.lines if x.computed and x.claim.relation == "as printed" and x.claim.kind != "cost"]
    chosen = [x for x in chosen if x.spread > 0 or x.score != x.score]
    drawn = [x for x in judged.lines if x.score == x.score]
    place = {line.claim.id: number for number, line in enumerate(drawn)}
    spread = np.array([max(x.spread, x.claim.tolerance / np.sqrt(3)) for x in chosen])
    apart = np.array([x.difference for x in chosen]) / spread
    within = np.eye(len(chosen))
    at = np.array([place.get(x.claim.id, -1) for x in chosen])
    known = np.flatnonzero(at >= 0)
    if len(known) > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            alike = np.nan_to_num(np.corrcoef(judged.nulls[:, at[known]].T))
        within[np.ix_(known, known)] = CORRELATED * alike * (1 - np.eye(len(known))) + np.eye(len(known))
    candidates = _candidates(observed, rules)
    traces = (
        _traces([x.claim for x in judged.lines], rules, arms, candidates, [x.claim for x in chosen]) / spread[:, None]
    )
    solved = np.linalg.solve(within, np.column_stack([apart, traces]))
    up, down = traces.T @ solved[:, 0], (traces * solved[:, 1:]).sum(axis=0)
    size = up / np.maximum(down, 1e-12)
    gain = np.where(down > 1e-9, up * size, 0) / np.array(
        [1 if len(where) == 1 else NARROWER for where, _ in candidates]
    )
    best = int(np.argmax(gain))
    if gain[best] < PRINTED_GAIN:
        return judged
    rest = np.abs(apart - size[best] * traces[:, best])
    differs = np.array([x.verdict == DIFFERS for x in chosen])
    cause = Cause("shift", candidates[best][0], float(size[best]), float(np.sqrt(gain[best])), float(gain[best]))
    involved = int((differs & (np.abs(traces[:, best]) > 1e-9)).sum())
    return replace(judged, causes=[cause], involved=involved, left=int((differs & (rest > judged.level)).sum()))


def _candidates(observed: Observations, rules: Rules) -> list[tuple[dict[str, str], dict[str, Array]]]:
    """Names on one axis or on two, and the rows and methods that bear them."""
    everywhere = np.ones(len(observed), bool)
    axes = {
        axis: {f"K = {n}" if axis == "shots" else str(n): observed.on(axis, [n]) for n in observed.names[axis]}
        for axis in ("dataset", "backbone", "tier", "shots")
    }
    axes["shots"].pop("K = 0", None)
    methods = list(observed.panel.methods)
    found = [({"method": m}, {m: everywhere}) for m in methods]
    found += [({axis: n}, dict.fromkeys(methods, rows)) for axis, names in axes.items() for n, rows in names.items()]
    for a, b in (("dataset", "backbone"), ("dataset", "tier"), ("dataset", "shots"), ("backbone", "shots")):
        pairs = product(axes[a].items(), axes[b].items())
        found += [({a: n, b: k}, dict.fromkeys(methods, rows & other)) for (n, rows), (k, other) in pairs]
    for axis in ("dataset", "backbone", "shots"):
        found += [({axis: n, "method": m}, {m: rows}) for (n, rows), m in product(axes[axis].items(), methods)]
    return found


def _traces(
    claims: Sequence[Claim], rules: Rules, arms: Arms, candidates: Sequence, wanted: Sequence[Claim]
) -> Float[Array, "c k"]:
    """How each claim moves when a candidate's accuracies rise by one point."""
    traces = []
    for start in range(0, len(candidates), BLOCK):
        block = candidates[start : start + BLOCK]
        shifts = {(m, "accuracy"): np.zeros((1 + len(block), len(arms[MATRIX]))) for m in arms[MATRIX].panel.methods}
        for row, (_, cells) in enumerate(block, start=1):
            for method, rows in cells.items():
                shifts[method, "accuracy"][row, rows] = 1.0
        moved = Evaluator(claims, rules, {**arms, MATRIX: replace(arms[MATRIX], shifts=shifts)})
        values = np.stack([moved.answer(claim).values for claim in wanted])
        traces.append(values[:, 1:] - values[:, :1])
    return np.concatenate(traces, axis=1)
