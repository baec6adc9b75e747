"""Compute a claim from records, probes or other claims."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product

import numpy as np
from jaxtyping import Bool, Float

from kshot.paper.arms import COOP, MATRIX, Arms, Observations, look_up
from kshot.paper.claims import Claim, Condition, Rule, Rules, matching, parse_conditions
from kshot.paper.formulas import (
    FORMULAS,
    NOT_KNOWN,
    OF_CELLS,
    OF_FIGURES,
    OF_PAIRS,
    Figure,
    Figures,
    Slice,
    made_of,
    stacked,
)
from kshot.stats.bootstrap import Estimate
from kshot.stats.correlation import rank_correlations, spearman, within
from kshot.types import CELL, Array

OTHER_PRECISION = "float64"
# Columns that every method has; the others belong to the cell.
OF_METHODS = ("accuracy", "ratio", "alpha", "fit_seconds", "absent")
# Conditions that choose cells.
SELECTING = ("backbone", "tier", "dataset", "datasets", "combos", "K", "seeds")
AXIS = {"dataset": "dataset", "backbone": "backbone", "tier": "tier", "K": "shots"}


class Evaluator:
    """Computes claims, each once; those made of other claims after these."""

    def __init__(self, claims: Sequence[Claim], rules: Rules, arms: Arms):
        self.claims = {claim.id: claim for claim in claims}
        self.rules, self.arms = rules, arms
        self.known: dict[str, Figure] = {}
        # Of claims that are not computed because some pairs are absent: "39 of 50 pairs".
        self.partly: dict[str, str] = {}
        self.rows = max(
            (max(len(o.counted), *(len(s) for s in o.shifts.values()), 1) for o in arms.values()), default=1
        )
        self.selected: dict[tuple, Bool[Array, " n"]] = {}

    def answer(self, claim: Claim) -> Figure:
        """The claim's figure; NaN where records and probes lack what it needs."""
        if claim.id not in self.known:
            found = self._answer(claim, self.rules.rule(claim))
            self.known[claim.id] = replace(found, values=np.broadcast_to(found.values, self.rows))
        return self.known[claim.id]

    def _answer(self, claim: Claim, rule: Rule) -> Figure:
        if rule.needs:
            return NOT_KNOWN
        if rule.formula:
            return Figure(np.array([FORMULAS[rule.formula](claim)]))
        if rule.association:
            return self._associations[rule.association]
        if rule.paired_with:
            return self._paired(rule)
        if rule.over:
            made = self._figures(rule.over)
            partly = [self.partly[name] for name in map(".".join, made) if name in self.partly]
            if partly:
                self.partly[claim.id] = partly[0]
            return _reduce(rule, made)
        return self._measure(claim, rule)

    def _figures(self, patterns: Sequence[str]) -> Figures:
        chosen = sorted(matching(tuple(self.claims), tuple(patterns)))
        return {tuple(name.split(".")): self.answer(self.claims[name]) for name in chosen}

    def _paired(self, rule: Rule) -> Figure:
        first, second = self._figures(rule.over), self._figures(rule.paired_with)
        if len(first) == len(second) == 1:
            second = dict(zip(first, second.values(), strict=True))
        else:
            by_place = {label[:-1]: figure for label, figure in second.items()}
            second = {label: by_place.get(label[:-1], NOT_KNOWN) for label in first}
        if not first or not all(figure.known for figure in (*first.values(), *second.values())):
            return NOT_KNOWN
        both = {**first, **{(*label, "second"): figure for label, figure in second.items()}}
        return made_of(OF_PAIRS[rule.reduce](stacked(first), stacked(second)), both)

    @cached_property
    def _associations(self) -> Mapping[str, Figure]:
        """Headroom against surplus over the strata of the matrix, zero-shot accuracy as difficulty."""
        observed = self.arms[MATRIX]
        columns = (
            observed.column("headroom.headroom"),
            observed.column("clap") - observed.column("oracle_lambda"),
            observed.column("zero_shot"),
        )
        keep = self._kept(observed, parse_conditions("tier=dataset"))
        strata = list(product(self.rules.paper["datasets"], self.rules.paper["backbones"]))
        means = [np.stack([_stratum_mean(observed, column, keep, *s) for s in strata], axis=1) for column in columns]
        means = np.broadcast_arrays(*means)
        if not all(np.isfinite(mean[0]).all() for mean in means):
            return defaultdict(lambda: NOT_KNOWN)
        names = np.array(strata)
        # Means of the same accuracies differ in their last bits with the order of summation: those are ties.
        sides = [np.round(mean, 9) for mean in means]
        first, second, _ = sides
        whole = partial(spearman, first[0], second[0], names[:, 0])
        found = {"rho": rank_correlations(first, second), "given_difficulty": rank_correlations(*sides)}
        estimated = {"rho": whole, "given_difficulty": partial(whole, sides[2][0])}
        for kind, axis in zip(("within_dataset", "within_backbone"), names.T, strict=True):
            inside = [rank_correlations(first[:, axis == n], second[:, axis == n]) for n in np.unique(axis)]
            found[kind] = np.nanmedian(inside, axis=0)
            estimated[kind] = partial(Estimate, within(first[0], second[0], axis), None, None, len(strata), 0)
        draws = len({seed for seed in observed.keys["seed"][keep].tolist() if seed >= 0})
        return {
            kind: Figure(values, len(strata), draws=draws, estimated=estimated.get(kind))
            for kind, values in found.items()
        }

    def _measure(self, claim: Claim, rule: Rule) -> Figure:
        conditions = {**claim.conditions, **parse_conditions(rule.keep)}
        arm = COOP if "splits" in conditions else MATRIX
        if "float64 minus float32" in conditions:
            arm = OTHER_PRECISION
        observed = self.arms.get(arm)
        if observed is None:
            return NOT_KNOWN
        keep = self._kept(observed, conditions)
        by = conditions["by"].values[0].split(",") if "by" in conditions else []
        figures: dict[tuple[str, ...], Figure] = {}
        of_method = rule.measure[0] in OF_METHODS
        for method, measure in product(_methods(conditions, observed) if of_method else [""], rule.measure):
            values = rule.scale * self._values(observed, method, measure, conditions, arm)
            other = observed.column(conditions["against"].values[0], rule.other) if rule.other else values
            known = keep & np.isfinite(values[0]) & np.isfinite(other[0])
            if not rule.partial and arm == MATRIX and not self._complete(claim, observed, known, conditions):
                return NOT_KNOWN
            for label, rows in _groups(observed, known, [axis for axis in by if axis in AXIS]):
                if rows.any():
                    figures[method, measure, *label] = _settled(
                        OF_CELLS[rule.figure](_slice(observed, rows, values, other))
                    )
        if not figures:
            return NOT_KNOWN
        return _reduce(replace(rule, reduce=rule.reduce or _aggregate(conditions)), figures)

    def _values(
        self, observed: Observations, method: str, measure: str, conditions: Mapping[str, Condition], arm: str
    ) -> Float[Array, "R n"]:
        """One column, minus another method, the same on another tier or backbone, or in the main precision."""
        values = observed.column(method, measure) if method else observed.column(measure)
        minus = conditions["minus"].values[0] if "minus" in conditions else ""
        if arm == OTHER_PRECISION:
            main = self.arms[MATRIX]
            return values - look_up(main.column(method, measure), main, observed.rows)
        if minus.startswith("tier:"):
            return values - observed.moved(values, "tier", minus.removeprefix("tier:"))
        if "@" in minus:
            name, backbone = minus.split("@")
            return values - observed.moved(observed.column(name, measure), "backbone", _folder_name(backbone))
        return values - observed.column(minus, measure) if minus and method else values

    def _kept(self, observed: Observations, conditions: Mapping[str, Condition]) -> Bool[Array, " n"]:
        """Rows that the conditions admit; without a backbone those of the paper's matrix."""
        paper = self.rules.paper
        wanted = {"backbone": Condition(tuple(paper["backbones"])), **conditions}
        said = (id(observed), *((key, wanted[key]) for key in SELECTING if key in wanted))
        if said in self.selected:
            return self.selected[said]
        keep = np.ones(len(observed), bool)
        for key in ("backbone", "tier", "dataset"):
            if key in wanted and wanted[key].values != ("all",):
                keep &= observed.on(key, [_folder_name(value) for value in wanted[key].values])
        if "datasets" in conditions:
            keep &= ~observed.on("dataset", paper["self_split"])
        if "combos" in conditions:
            keep &= observed.balanced(keep)
        if "K" in conditions:
            keep &= observed.on("shots", self._admitted(conditions["K"], observed.names["shots"]))
        if "seeds" in conditions:
            keep &= observed.keys["seed"] < int(conditions["seeds"].values[0])
        self.selected[said] = keep
        return keep

    def _complete(
        self, claim: Claim, observed: Observations, known: Bool[Array, " n"], conditions: Mapping[str, Condition]
    ) -> bool:
        """Whether every stratum of the claim has a value, for the same draws at every shot count; a mean over fewer
        would be another number."""
        paper = self.rules.paper
        named = {axis: c.values for axis, c in conditions.items()}
        datasets, backbones = (named.get(axis, tuple(paper[f"{axis}s"])) for axis in ("dataset", "backbone"))
        tiers = named.get("tier", ())
        # Some datasets have too few pictures for more than four shots.
        late = "K" in conditions and not self._admitted(conditions["K"], range(1, 5))
        left_out = [*paper["self_split"]] if "datasets" in conditions else []
        left_out += paper["few_shots_only"] if late or "combos" in conditions else []
        if tiers == ("all",) or "tier" in named.get("by", ()):
            tiers = tuple(paper["tiers"])
        counts = np.bincount(observed.cell_codes[known], minlength=observed.cell_shape.prod())
        rows = np.argwhere(counts.reshape(observed.cell_shape).any(axis=3)).tolist()
        names = [observed.names[axis] for axis in CELL[:3]]
        there = {tuple(of_axis[n] for of_axis, n in zip(names, row, strict=True)) for row in rows}
        in_any_tier = {stratum[:2] for stratum in there}
        wanted = [(d, _folder_name(b)) for d, b in product(datasets, backbones) if d not in left_out]
        pairs = sum(all((*s, t) in there for t in tiers) if tiers else s in in_any_tier for s in wanted)
        if 0 < pairs < len(wanted):
            self.partly[claim.id] = f"{pairs} of {len(wanted)} pairs"
        seeds = len(np.unique(observed.codes["seed"][known]))
        return pairs == len(wanted) and bool((counts[counts > 0] == seeds).all())

    def _admitted(self, condition: Condition, shots: Iterable[int]) -> list[int]:
        low = condition.values == ("low",)
        return [k for k in shots if (k in self.rules.paper["low_shots"] if low else condition.admits(k))]


def _methods(conditions: Mapping[str, Condition], observed: Observations) -> list[str]:
    """The methods of a claim; one without a name where it is about a fact or a probe."""
    if "method" not in conditions:
        return [""]
    named = conditions["method"].values
    if named[0].startswith("all but "):
        return [m for m in observed.panel.methods if m != named[0].removeprefix("all but ")]
    return list(named)


def _aggregate(conditions: Mapping[str, Condition]) -> str:
    """`min over backbones` is the reduction `min`; means over cells need none."""
    word = conditions["aggregate"].values[0].split()[0] if "aggregate" in conditions else ""
    return word if word in ("min", "max", "median") else ""


def _reduce(rule: Rule, figures: Figures) -> Figure:
    if not figures or not all(figure.known for figure in figures.values()):
        return NOT_KNOWN
    if not rule.reduce:
        (only,) = figures.values()
        return only
    return OF_FIGURES[rule.reduce](figures)


def _settled(figure: Figure) -> Figure:
    """Without draws where no other draw would change it: zero-shot accuracy, the geometry of a pool."""
    settled = np.nanmax(figure.values) - np.nanmin(figure.values) <= 1e-9 * max(1.0, abs(figure.values[0]))
    return replace(figure, draws=0) if settled else figure


def _groups(
    observed: Observations, known: Bool[Array, " n"], axes: Sequence[str]
) -> list[tuple[tuple[str, ...], Bool[Array, " n"]]]:
    """Rows by their values on these axes; all together without any."""
    if not axes:
        return [((), known)]
    codes = np.stack([observed.codes[AXIS[axis]] for axis in axes], axis=1)
    found = [(row, known & (codes == row).all(axis=1)) for row in np.unique(codes[known], axis=0)]
    return [
        (("/".join(str(observed.names[AXIS[a]][c]) for a, c in zip(axes, row, strict=True)),), rows)
        for row, rows in found
    ]


def _slice(observed: Observations, rows: Bool[Array, " n"], values: Array, other: Array) -> Slice:
    axes = {name: observed.codes[name][rows] for name in ("dataset", "backbone", "shots")}
    seed = observed.keys["seed"][rows]
    return Slice(values[:, rows], other[:, rows], observed.counted[:, rows], **axes, seed=seed)


def _stratum_mean(
    observed: Observations, values: Float[Array, "R n"], keep: Bool[Array, " n"], dataset: str, backbone: str
) -> Float[Array, " S"]:
    rows = keep & observed.on("dataset", [dataset]) & observed.on("backbone", [backbone]) & np.isfinite(values[0])
    if not rows.any():
        return np.full(max(len(values), len(observed.counted)), np.nan)
    weights = observed.counted[:, rows]
    return (values[:, rows] * weights).sum(axis=1) / weights.sum(axis=1)


def _folder_name(name: str) -> str:
    """Backbones are printed with a slash and stored with a dash."""
    return name.replace("/", "-")
