"""Compute a claim from records, probes or other claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from jaxtyping import Bool, Float

from kshot.paper.arms import COOP, MATRIX, Arms, Observations, look_up
from kshot.paper.claims import Claim, Condition, parse_conditions
from kshot.paper.rules import Rule, Rules, matches
from kshot.paper.statistics import FORMULAS, NOT_KNOWN, OF_CELLS, OF_FIGURES, OF_PAIRS, Figures, Slice, without_interval
from kshot.stats.bootstrap import Estimate
from kshot.stats.correlation import association
from kshot.types import Array

OTHER_PRECISION = "float64"
# Columns that every method has; the others belong to the cell.
OF_METHODS = ("accuracy", "ratio", "alpha", "fit_seconds", "absent")
AXIS = {"dataset": "dataset", "backbone": "backbone", "tier": "tier", "K": "shots"}


class Evaluator:
    """Computes claims, each once; those made of other claims after these."""

    def __init__(self, claims: Sequence[Claim], rules: Rules, arms: Arms):
        self.claims = {claim.id: claim for claim in claims}
        self.rules, self.arms = rules, arms
        self.known: dict[str, Estimate] = {}

    def answer(self, claim: Claim) -> Estimate:
        """The estimate; its mean is NaN where records and probes lack what it needs."""
        if claim.id not in self.known:
            self.known[claim.id] = self._answer(claim, self.rules.rule(claim))
        return self.known[claim.id]

    def _answer(self, claim: Claim, rule: Rule) -> Estimate:
        if rule.needs:
            return NOT_KNOWN
        if rule.formula:
            return without_interval(FORMULAS[rule.formula](claim))
        if rule.association:
            return self._association(rule)
        if rule.paired_with:
            return self._paired(rule)
        if rule.over:
            return _reduce(rule, self._figures(rule.over))
        return self._measure(claim, rule)

    def _figures(self, patterns: Sequence[str]) -> Figures:
        chosen = sorted(name for name in self.claims if matches(name, patterns))
        return {tuple(name.split(".")): self.answer(self.claims[name]) for name in chosen}

    def _paired(self, rule: Rule) -> Estimate:
        first, second = self._figures(rule.over), self._figures(rule.paired_with)
        if len(first) == len(second) == 1:
            pairs = list(zip(first.values(), second.values(), strict=True))
        else:
            by_place = {label[:-1]: figure for label, figure in second.items()}
            pairs = [(figure, by_place[label[:-1]]) for label, figure in first.items()]
        values = np.array([[a.mean, b.mean] for a, b in pairs])
        if not np.isfinite(values).all():
            return NOT_KNOWN
        return without_interval(OF_PAIRS[rule.reduce](*values.T), len(pairs))

    def _association(self, rule: Rule) -> Estimate:
        """Headroom against surplus over the strata of the matrix, zero-shot accuracy as difficulty."""
        observed = self.arms[MATRIX]
        columns = (
            observed.column("headroom.headroom"),
            observed.column("clap") - observed.column("oracle_lambda"),
            observed.column("zero_shot"),
        )
        keep = self._kept(observed, parse_conditions("tier=dataset"))
        strata = list(product(self.rules.paper["datasets"], self.rules.paper["backbones"]))
        means = np.array([[_stratum_mean(observed, column, keep, *s) for column in columns] for s in strata])
        if not np.isfinite(means).all():
            return NOT_KNOWN
        names = np.array(strata)
        headroom, surplus, difficulty = means.T
        measured = association(headroom, surplus, difficulty, names[:, 0], names[:, 1])
        value = getattr(measured, rule.association)
        return value if isinstance(value, Estimate) else without_interval(value, len(strata))

    def _measure(self, claim: Claim, rule: Rule) -> Estimate:
        conditions = {**claim.conditions, **parse_conditions(rule.keep)}
        arm = COOP if "splits" in conditions else MATRIX
        if "float64 minus float32" in conditions:
            arm = OTHER_PRECISION
        observed = self.arms.get(arm)
        if observed is None:
            return NOT_KNOWN
        keep = self._kept(observed, conditions)
        by = conditions["by"].values[0].split(",") if "by" in conditions else []
        figures: dict[tuple[str, ...], Estimate] = {}
        of_method = rule.measure[0] in OF_METHODS
        for method, measure in product(_methods(conditions, observed) if of_method else [""], rule.measure):
            values = rule.scale * self._values(observed, method, measure, conditions, arm)
            other = observed.column(conditions["against"].values[0], rule.other) if rule.other else values
            known = keep & np.isfinite(values) & np.isfinite(other)
            if not rule.partial and arm == MATRIX and not self._complete(observed, known, conditions):
                return NOT_KNOWN
            for label, rows in _groups(observed, known, [axis for axis in by if axis in AXIS]):
                if rows.any():
                    figures[method, measure, *label] = OF_CELLS[rule.figure](_slice(observed, rows, values, other))
        if not figures:
            return NOT_KNOWN
        return _reduce(replace(rule, reduce=rule.reduce or _aggregate(conditions)), figures)

    def _values(
        self, observed: Observations, method: str, measure: str, conditions: Mapping[str, Condition], arm: str
    ) -> Float[Array, " n"]:
        """One column, minus another method, the same on another tier or backbone, or in the main precision."""
        values = observed.column(method, measure) if method else observed.column(measure)
        minus = conditions["minus"].values[0] if "minus" in conditions else ""
        if arm == OTHER_PRECISION:
            main = self.arms[MATRIX]
            return values - look_up(main.column(method, measure), main, observed.rows())
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
        keep = np.ones(len(observed.keys["shots"]), bool)
        for key in ("backbone", "tier", "dataset"):
            if key in wanted and wanted[key].values != ("all",):
                keep &= np.isin(observed.keys[key], [_folder_name(value) for value in wanted[key].values])
        if "datasets" in conditions:
            keep &= ~np.isin(observed.keys["dataset"], paper["self_split"])
        if "combos" in conditions:
            keep &= observed.balanced(keep)
        if "K" in conditions:
            shots = np.unique(observed.keys["shots"]).tolist()
            keep &= np.isin(observed.keys["shots"], self._admitted(conditions["K"], shots))
        if "seeds" in conditions:
            keep &= observed.keys["seed"] < int(conditions["seeds"].values[0])
        return keep

    def _complete(self, observed: Observations, known: Bool[Array, " n"], conditions: Mapping[str, Condition]) -> bool:
        """Whether every stratum of the claim has a value; a mean over fewer would be another number."""
        paper = self.rules.paper
        datasets = conditions["dataset"].values if "dataset" in conditions else tuple(paper["datasets"])
        if "datasets" in conditions:
            datasets = tuple(d for d in datasets if d not in paper["self_split"])
        # Some datasets have too few pictures for more than four shots.
        late = "K" in conditions and not self._admitted(conditions["K"], range(1, 5))
        if late or "combos" in conditions:
            datasets = tuple(d for d in datasets if d not in paper["few_shots_only"])
        backbones = conditions["backbone"].values if "backbone" in conditions else tuple(paper["backbones"])
        tiers = conditions["tier"].values if "tier" in conditions else ("",)
        if tiers == ("all",) or "tier" in conditions.get("by", Condition(())).values:
            tiers = tuple(paper["tiers"])
        wanted = set(product(datasets, map(_folder_name, backbones), tiers))
        keys = [observed.keys[axis][known].tolist() for axis in ("dataset", "backbone", "tier")]
        return wanted <= {(d, b, t if tiers != ("",) else "") for d, b, t in zip(*keys, strict=True)}

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


def _reduce(rule: Rule, figures: Figures) -> Estimate:
    if not all(np.isfinite(figure.mean) for figure in figures.values()):
        return NOT_KNOWN
    if not rule.reduce:
        (only,) = figures.values()
        return only
    return OF_FIGURES[rule.reduce](figures)


def _groups(
    observed: Observations, known: Bool[Array, " n"], axes: Sequence[str]
) -> list[tuple[tuple[str, ...], Bool[Array, " n"]]]:
    """Rows by their values on these axes; all together without any."""
    labels = np.array(["/".join(map(str, key)) for key in zip(*(observed.keys[AXIS[a]] for a in axes), strict=True)])
    return [((str(name),), known & (labels == name)) for name in np.unique(labels[known])] if axes else [((), known)]


def _slice(observed: Observations, rows: Bool[Array, " n"], values: Array, other: Array) -> Slice:
    axes = {name: observed.keys[name][rows] for name in ("dataset", "backbone", "shots", "seed")}
    return Slice(values[rows], other[rows], **axes)


def _stratum_mean(
    observed: Observations, values: Float[Array, " n"], keep: Bool[Array, " n"], dataset: str, backbone: str
) -> float:
    here = (observed.keys["dataset"] == dataset) & (observed.keys["backbone"] == backbone)
    known = values[keep & here & np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _folder_name(name: str) -> str:
    """Backbones are printed with a slash and stored with a dash."""
    return name.replace("/", "-")
