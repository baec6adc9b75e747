"""What is plain without statistics: other test sets, other parameters, copies within a run."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from kshot.bench.recipes import KNOB_ORACLE, described, recipe
from kshot.bench.study import load_study
from kshot.methods.registry import builtin_class
from kshot.paper.arms import AUGMENTED, WITH_VIEWS, Observations
from kshot.paper.claims import Claim, paper_rules
from kshot.stats.panel import Panel
from kshot.types import Array

# By method; a method of several arms may have several.
Recipes: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
# Words of a recipe that say which code computed it.
VERSIONS = ("version", "uses", "code")

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
    columns = np.stack([panel.column(method, measure) for method in panel.methods], axis=-1)
    return Cube(on_axes(panel, columns, names), names, panel.methods)


def on_axes(panel: Panel, rows: Float[Array, "n ..."], names: Mapping[str, Sequence]) -> Float[Array, "d b t k s ..."]:
    """Rows of cells by the given names of each axis; NaN where there is none."""
    place = [{name: number for number, name in enumerate(names[axis])} for axis in AXES]
    at = np.array([[p.get(v, -1) for v in panel.cells[axis].tolist()] for p, axis in zip(place, AXES, strict=True)])
    keep = (at >= 0).all(axis=0)
    values = np.full((*(len(names[axis]) for axis in AXES), *rows.shape[1:]), np.nan)
    values[tuple(at[:, keep])] = rows[keep]
    return values


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


def recipes_of(run: Observations) -> Recipes:
    """What the records of each method say that they computed, every recipe once; empty where they say nothing."""
    records = run.panel.records
    if records is None or "recipe" not in records.schema.names:
        return {}
    recipes: dict[str, list[dict[str, Any]]] = {}
    for method, text in dict.fromkeys(zip(*(records[n].to_pylist() for n in ("method", "recipe")), strict=True)):
        # A record that is undefined has no recipe.
        if text and text != "{}":
            recipes.setdefault(method, []).append(_flat(json.loads(text)))
    return recipes


@cache
def paper_recipes() -> Recipes:
    """The recipes of the paper's heads, by the package's study files; without versions, which the paper has not."""
    recipes: dict[str, list[dict[str, Any]]] = {}
    for name in paper_rules().paper["studies"]:
        for spec in load_study(name).methods().values():
            words = _flat(json.loads(json.dumps(recipe(spec, described(spec)))))
            method = spec.name + (WITH_VIEWS if name.startswith(AUGMENTED) else "")
            recipes.setdefault(method, []).append({k: v for k, v in words.items() if k not in VERSIONS})
    return recipes


def recipes_apart(ours: Recipes, theirs: Recipes, ignored: Collection[str] = ()) -> list[str]:
    """Methods whose parameters are none of the others': "clap: epochs 150 here, 300 there"."""
    told = []
    for method in ours.keys() & theirs.keys():
        for words in ours[method]:
            mine = {name: value for name, value in words.items() if name not in ignored}
            if mine in theirs[method]:
                continue
            its = theirs[method][0]
            for name in sorted(mine.keys() | its.keys()):
                pair = [side[name] if name in side else _default(side, name) for side in (mine, its)]
                if pair[0] != pair[1]:
                    told.append(f"{method}: {name} {pair[0]} here, {pair[1]} there")
    return sorted(set(told))


def _default(words: Mapping[str, Any], name: str) -> Any:
    """The value of a parameter that a recipe leaves out."""
    path = str(words.get("method", "")).removeprefix(KNOB_ORACLE)
    known = signature(builtin_class(path)).parameters if path.startswith("kshot.") else {}
    return known[name].default if name in known else "the default"


def _flat(words: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in words.items() if name != "params"} | dict(words.get("params") or {})
