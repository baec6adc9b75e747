"""Compute a claim from records, probes or other claims."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.arms import COOP, MATRIX, Arms, Observations, look_up
from kshot.paper.claims import Claim, Condition, Rule, Rules, matching, parse_conditions
from kshot.paper.formulas import (
    FORMULAS,
    MEAN,
    MEAN_OF_COLUMNS,
    NOT_COMPUTED,
    OF_CELLS,
    OF_FIGURES,
    OF_PAIRS,
    Figure,
    Figures,
    Slice,
    Weights,
    cell_weights,
    values_of,
)
from kshot.stats.bootstrap import Estimate
from kshot.stats.correlation import association
from kshot.types import CELL, Array

OTHER_PRECISION = "float64"
# Columns that every method has; the others belong to the cell.
OF_METHODS = ("accuracy", "ratio", "alpha", "fit_seconds", "absent")
# Conditions that choose cells.
SELECTING = ("backbone", "tier", "dataset", "datasets", "combos", "K", "seeds")
AXIS = {"dataset": "dataset", "backbone": "backbone", "tier": "tier", "K": "shots"}


@dataclass(frozen=True)
class Term:
    """A column (name, measure) times a factor, read for every row at another one; −1 where there is none."""

    column: tuple[str, str]
    factor: float
    at: Int[Array, " n"]


class Evaluator:
    """Computes claims, each once; those made of other claims after these."""

    def __init__(self, claims: Sequence[Claim], rules: Rules, arms: Arms):
        self.claims = {claim.id: claim for claim in claims}
        self.rules, self.arms = rules, arms
        self.figures: dict[str, Figure] = {}
        # Of claims that are not computed because some pairs are absent: "39 of 50 pairs".
        self.partly: dict[str, str] = {}
        self.selected: dict[tuple, Bool[Array, " n"]] = {}

    def answer(self, claim: Claim) -> Figure:
        """The claim's figure; NaN where records and probes lack what it needs."""
        if claim.id not in self.figures:
            self.figures[claim.id] = self._answer(claim, self.rules.rule(claim))
        return self.figures[claim.id]

    def _answer(self, claim: Claim, rule: Rule) -> Figure:
        if rule.needs:
            return NOT_COMPUTED
        if rule.formula:
            return Figure(FORMULAS[rule.formula](claim))
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
            second = {label: by_place.get(label[:-1], NOT_COMPUTED) for label in first}
        if not first or not all(figure.computed for figure in (*first.values(), *second.values())):
            return NOT_COMPUTED
        return Figure(OF_PAIRS[rule.reduce](values_of(first), values_of(second)), 2 * len(first))

    @cached_property
    def _associations(self) -> Mapping[str, Figure]:
        """Headroom against surplus over the strata of the matrix, zero-shot accuracy as difficulty."""
        observed = self.arms[MATRIX]
        surplus = observed.column("clap") - observed.column("oracle_lambda")
        keep = self._kept(observed, parse_conditions("tier=dataset"))
        strata = list(product(self.rules.paper["datasets"], self.rules.paper["backbones"]))
        columns = (observed.column("headroom.headroom"), surplus, observed.column("zero_shot"))
        means = [np.array([_stratum_mean(observed, column, keep, *s) for s in strata]) for column in columns]
        if not np.isfinite(means).all():
            return defaultdict(lambda: NOT_COMPUTED)
        estimates = vars(association(*means, *np.array(strata).T))
        plain = {kind: e for kind, e in estimates.items() if not isinstance(e, Estimate)}
        return {kind: Figure(value, len(strata)) for kind, value in plain.items()} | {
            kind: Figure(e.mean, e.n, e.G, None, lambda e=e: e) for kind, e in estimates.items() if kind not in plain
        }

    def _measure(self, claim: Claim, rule: Rule) -> Figure:
        conditions = {**claim.conditions, **parse_conditions(rule.keep)}
        arm = COOP if "splits" in conditions else MATRIX
        if "float64 minus float32" in conditions:
            arm = OTHER_PRECISION
        observed = self.arms.get(arm)
        if observed is None:
            return NOT_COMPUTED
        keep = self._kept(observed, conditions)
        by = conditions["by"].values[0].split(",") if "by" in conditions else []
        figures: dict[tuple[str, ...], Figure] = {}
        of_method = rule.measure[0] in OF_METHODS
        for method, measure in product(_methods(conditions, observed) if of_method else [""], rule.measure):
            terms = _terms(observed, method, measure, conditions, rule.scale)
            values = _sum_of(observed, terms)
            if arm == OTHER_PRECISION:
                main = self.arms[MATRIX]
                values = values - look_up(main.column(method, measure), main, observed.rows)
            other = observed.column(conditions["against"].values[0], rule.other) if rule.other else values
            there = keep & np.isfinite(values) & np.isfinite(other)
            if rule.figure in (MEAN, MEAN_OF_COLUMNS):
                there &= ~self._left_out(observed, method)
            if not rule.partial and arm == MATRIX and not self._complete(claim, observed, there, conditions):
                return NOT_COMPUTED
            for label, rows in _groups(observed, there, [axis for axis in by if axis in AXIS]):
                if rows.any():
                    figure = OF_CELLS[rule.figure](_slice(observed, rows, values, other))
                    if rule.figure in (MEAN, MEAN_OF_COLUMNS) and arm != OTHER_PRECISION:
                        figure = replace(figure, weights=_weights(arm, rule, observed, rows, terms))
                    figures[method, measure, *label] = figure
        if not figures:
            return NOT_COMPUTED
        return _reduce(replace(rule, reduce=rule.reduce or _aggregate(conditions)), figures)

    def _kept(self, observed: Observations, conditions: Mapping[str, Condition]) -> Bool[Array, " n"]:
        """Rows that the conditions admit; without a backbone those of the paper's matrix."""
        paper = self.rules.paper
        admitted = {"backbone": Condition(tuple(paper["backbones"])), **conditions}
        selection = (id(observed), *((key, admitted[key]) for key in SELECTING if key in admitted))
        if selection in self.selected:
            return self.selected[selection]
        keep = np.ones(len(observed), bool)
        for key in ("backbone", "tier", "dataset"):
            if key in admitted and admitted[key].values != ("all",):
                keep &= observed.on(key, [_folder_name(value) for value in admitted[key].values])
        if "datasets" in conditions:
            keep &= ~observed.on("dataset", paper["self_split"])
        if "combos" in conditions:
            keep &= observed.balanced(keep)
        if "K" in conditions:
            keep &= observed.on("shots", self._admitted(conditions["K"], observed.names["shots"]))
        if "seeds" in conditions:
            keep &= observed.keys["seed"] < int(conditions["seeds"].values[0])
        self.selected[selection] = keep
        return keep

    def _left_out(self, observed: Observations, method: str) -> Bool[Array, " n"]:
        """Cells that the paper did not run."""
        skipped = self.rules.paper["left_out"]
        if method != skipped["method"]:
            return np.zeros(len(observed), bool)
        return observed.on("dataset", skipped["datasets"]) & observed.on("shots", [skipped["shots"]])

    def _complete(
        self, claim: Claim, observed: Observations, there: Bool[Array, " n"], conditions: Mapping[str, Condition]
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
        counts = np.bincount(observed.cell_codes[there], minlength=observed.cell_shape.prod())
        rows = np.argwhere(counts.reshape(observed.cell_shape).any(axis=3)).tolist()
        names = [observed.names[axis] for axis in CELL[:3]]
        present = {tuple(of_axis[n] for of_axis, n in zip(names, row, strict=True)) for row in rows}
        in_any_tier = {stratum[:2] for stratum in present}
        expected = [(d, _folder_name(b)) for d, b in product(datasets, backbones) if d not in left_out]
        pairs = sum(all((*s, t) in present for t in tiers) if tiers else s in in_any_tier for s in expected)
        if 0 < pairs < len(expected):
            self.partly[claim.id] = f"{pairs} of {len(expected)} pairs"
        seeds = len(np.unique(observed.codes["seed"][there]))
        return pairs == len(expected) and bool((counts[counts > 0] == seeds).all())

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


def _terms(
    observed: Observations, method: str, measure: str, conditions: Mapping[str, Condition], scale: float
) -> list[Term]:
    """One column, minus another method, or the same on another tier or backbone."""
    here = np.arange(len(observed))
    column = (method, measure) if method else (measure, "accuracy")
    terms = [Term(column, scale, here)]
    minus = conditions["minus"].values[0] if "minus" in conditions else ""
    if minus.startswith("tier:"):
        terms.append(Term(column, -scale, observed.moved("tier", minus.removeprefix("tier:"))))
    elif "@" in minus:
        name, backbone = minus.split("@")
        terms.append(Term((name, measure), -scale, observed.moved("backbone", _folder_name(backbone))))
    elif minus and method:
        terms.append(Term((minus, measure), -scale, here))
    return terms


def _sum_of(observed: Observations, terms: Sequence[Term]) -> Float[Array, " n"]:
    """The terms' sum; NaN where one has no value."""
    columns = [term.factor * np.where(term.at >= 0, observed.column(*term.column)[term.at], np.nan) for term in terms]
    return np.sum(columns, axis=0)


def _weights(arm: str, rule: Rule, observed: Observations, rows: Bool[Array, " n"], terms: Sequence[Term]) -> Weights:
    weights = cell_weights(rule.figure, observed.keys["shots"][rows])
    parts: dict[tuple[str, str], tuple[Array, Array]] = {}
    for term in terms:
        at, own = parts.get(term.column, (np.zeros(0, int), np.zeros(0)))
        parts[term.column] = (np.append(at, term.at[rows]), np.append(own, term.factor * weights))
    return Weights(arm, parts)


def _aggregate(conditions: Mapping[str, Condition]) -> str:
    """`min over backbones` is the reduction `min`; means over cells need none."""
    word = conditions["aggregate"].values[0].split()[0] if "aggregate" in conditions else ""
    return word if word in ("min", "max", "median") else ""


def _reduce(rule: Rule, figures: Figures) -> Figure:
    if not figures or not all(figure.computed for figure in figures.values()):
        return NOT_COMPUTED
    if not rule.reduce:
        (only,) = figures.values()
        return only
    return OF_FIGURES[rule.reduce](figures)


def _groups(
    observed: Observations, there: Bool[Array, " n"], axes: Sequence[str]
) -> list[tuple[tuple[str, ...], Bool[Array, " n"]]]:
    """Rows by their values on these axes; all together without any."""
    if not axes:
        return [((), there)]
    codes = np.stack([observed.codes[AXIS[axis]] for axis in axes], axis=1)
    rows = [(row, there & (codes == row).all(axis=1)) for row in np.unique(codes[there], axis=0)]
    return [
        (("/".join(str(observed.names[AXIS[a]][c]) for a, c in zip(axes, row, strict=True)),), members)
        for row, members in rows
    ]


def _slice(observed: Observations, rows: Bool[Array, " n"], values: Array, other: Array) -> Slice:
    axes = {name: observed.codes[name][rows] for name in ("dataset", "backbone", "shots")}
    return Slice(values[rows], other[rows], **axes, seed=observed.keys["seed"][rows])


def _stratum_mean(
    observed: Observations, values: Float[Array, " n"], keep: Bool[Array, " n"], dataset: str, backbone: str
) -> float:
    rows = keep & observed.on("dataset", [dataset]) & observed.on("backbone", [backbone]) & np.isfinite(values)
    return float(values[rows].mean()) if rows.any() else float("nan")


def _folder_name(name: str) -> str:
    """Backbones are printed with a slash and stored with a dash."""
    return name.replace("/", "-")
