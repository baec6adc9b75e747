"""What is plain without statistics: other test sets, other parameters, copies within a run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.paper.arms import Observations
from kshot.paper.claims import Claim
from kshot.types import Array

AXES = ("dataset", "backbone", "tier", "shots", "seed")
WORDS = {"shots": "K = {}", "seed": "draw {}", "tier": "tier {}"}
FACTS = {"n_test": "test pictures", "n_classes": "classes"}
IN_CLAIMS = {"n_test": "n_test", "n_classes": "classes"}
# Entries that must be alike, and the share of those, before results are called copies; accuracies this high are equal
# by chance.
FEWEST, ALIKE, CEILING = 15, 0.9, 99.9
# Methods that are the same whatever the axis.
BLIND = {"tier": ("ncm", "logistic_probe", "logistic_probe_test"), "shots": ("zero_shot",), "seed": ("zero_shot",)}


@dataclass(frozen=True)
class Cube:
    """Accuracies by (dataset, backbone, tier, shots, seed, method); NaN where there is none."""

    values: Float[Array, "d b t k s m"]
    names: Mapping[str, Sequence]
    methods: Sequence[str]


def cube(run: Observations, measure: str = "value", names: Mapping[str, Sequence] | None = None) -> Cube:
    """A measure of the cells of a run; on the given names of each axis, or its own."""
    panel = run.panel
    names = names or {axis: sorted(set(panel.cells[axis].tolist())) for axis in AXES}
    keep, places = np.ones(len(panel), bool), []
    for axis in AXES:
        place = {name: number for number, name in enumerate(names[axis])}
        codes = np.array([place.get(name, -1) for name in panel.cells[axis].tolist()])
        keep &= codes >= 0
        places.append(codes)
    values = np.full((*(len(names[axis]) for axis in AXES), len(panel.methods)), np.nan)
    at = tuple(codes[keep] for codes in places)
    for number, method in enumerate(panel.methods):
        values[(*at, number)] = panel.column(method, measure)[keep]
    return Cube(values, names, panel.methods)


def said(axis: str, name: object) -> str:
    return WORDS.get(axis, "{}").format(name)


def copies(run: Observations) -> list[str]:
    """Draws, encoders, tiers or shot counts whose results are those of another, everywhere or under one name."""
    whole = cube(run)
    told = []
    for number, axis in list(enumerate(AXES))[1:]:
        seeing = [m for m, name in enumerate(whole.methods) if name.split("+")[0] not in BLIND.get(axis, ())]
        values = whole.values[..., seeing]
        if axis == "seed":
            values = values[..., [i for i, m in enumerate(seeing) if _varies(whole.values[..., m])]]
        for first, second in combinations(range(values.shape[number]), 2):
            a, b = np.take(values, first, number), np.take(values, second, number)
            asked = np.isfinite(a) & np.isfinite(b) & (a < CEILING)
            alike = asked & (np.abs(a - b) < 1e-9)
            pair = f"{said(axis, whole.names[axis][second])} is the same as {said(axis, whole.names[axis][first])}"
            rest = [other for other in AXES if other != axis]
            told += [f"{pair}{where}" for where in _where(alike, asked, [(o, whole.names[o]) for o in rest])]
    return told


def _varies(values: Float[Array, "d b t k s"]) -> bool:
    """Whether draws have an influence on most cells; such as not GDA at K = 1."""
    with np.errstate(invalid="ignore"):
        spread = np.nanmax(np.where(np.isfinite(values), values, -np.inf), axis=4) - np.nanmin(
            np.where(np.isfinite(values), values, np.inf), axis=4
        )
    return bool((spread[np.isfinite(spread)] > 1e-9).any())


def _where(alike: Array, asked: Array, axes: list[tuple[str, Sequence]]) -> Iterator[str]:
    if asked.sum() >= FEWEST and alike.sum() > ALIKE * asked.sum():
        yield ""
        return
    for number, (axis, names) in enumerate(axes):
        others = tuple(n for n in range(alike.ndim) if n != number)
        there, equal = asked.sum(axis=others), alike.sum(axis=others)
        found = np.flatnonzero((there >= FEWEST) & (equal > ALIKE * there))
        if len(found):
            yield " in " + ", ".join(said(axis, names[n]) for n in found.tolist())


def printed_facts(claims: Sequence[Claim]) -> dict[tuple[str, str], list[int]]:
    """Numbers of classes and of test pictures that the paper prints, by (dataset in lower case, fact)."""
    found = {}
    for claim in claims:
        words = claim.id.split(".")
        for fact, word in IN_CLAIMS.items():
            if len(words) == 3 and words[0] == "datasets" and words[2] == word:
                found[words[1], fact] = [int(claim.value)]
    return found


def facts_of(run: Observations) -> dict[tuple[str, str], list[int]]:
    """Numbers of classes and of test pictures of every dataset, with any encoder."""
    found = {}
    for dataset in run.names["dataset"]:
        here = run.on("dataset", [dataset])
        for fact in FACTS:
            values = run.column(fact)[here]
            found[str(dataset).lower(), fact] = sorted({int(v) for v in values[np.isfinite(values)]})
    return found


def facts_apart(ours: Mapping, theirs: Mapping) -> list[str]:
    """Datasets that have not as many classes or test pictures."""
    return [
        f"{dataset}: {', '.join(map(str, ours[dataset, fact]))} {FACTS[fact]} here, "
        f"{', '.join(map(str, theirs[dataset, fact]))} there"
        for dataset, fact in ours
        if ours[dataset, fact] and theirs.get((dataset, fact)) and ours[dataset, fact] != theirs[dataset, fact]
    ]


def recipes_of(run: Observations) -> dict[str, dict[str, Any]]:
    """The parameters that each method's records name; empty where records have no recipe."""
    records = run.panel.records
    if records is None or "recipe" not in records.schema.names:
        return {}
    pairs = dict(zip(records["method"].to_pylist(), records["recipe"].to_pylist(), strict=True))
    return {method: _flat(json.loads(text or "{}")) for method, text in pairs.items()}


def recipes_apart(ours: Mapping[str, Mapping], theirs: Mapping[str, Mapping]) -> list[str]:
    """Methods whose parameters are others: "clap: epochs 150 here, 300 there"."""
    told = []
    for method in ours.keys() & theirs.keys():
        for name in sorted(ours[method].keys() | theirs[method].keys()):
            a, b = ours[method].get(name, "the default"), theirs[method].get(name, "the default")
            if a != b:
                told.append(f"{method}: {name} {a} here, {b} there")
    return sorted(told)


def _flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in recipe.items() if name != "params"} | dict(recipe.get("params") or {})
