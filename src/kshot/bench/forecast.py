"""A plain estimate of the seconds that a query still takes: each missing record costs what the nearest kept record of
its recipe took, times the ratio of their sizes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from kshot.bench.query import Query
from kshot.bench.records import Records

BASIS = (
    "Processor time, scaled from the seconds of the nearest kept records; they were measured on the machines that made "
    "them, so take it for the order of magnitude."
)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Records that are there and missing, the seconds of those whose recipe was timed, and the methods of others."""

    there: int
    missing: int
    seconds: float
    unknown: tuple[str, ...]


def forecast(asked: Query, records: Records) -> Forecast:
    """What a query still takes."""
    done, timed = records.keys(), timings(records)
    recipes = {name: words_of(words) for name, words in asked.source.recipes.items()}
    there, missing, seconds, unknown = 0, 0, 0.0, set()
    for cell, one in asked.asked():
        if one.key in done:
            there += 1
        elif one.key:
            missing += 1
            sizes = asked.strata[cell.dataset, cell.backbone]
            size = work(sizes.classes, cell.shots, sizes.n_test)
            kept = timed.get(recipes[one.spec.name], [])
            if kept:
                near, took = min(kept, key=lambda pair: abs(log(pair[0] / size)))
                seconds += took * size / near
            else:
                unknown.add(one.spec.name)
    return Forecast(there, missing, seconds, tuple(sorted(unknown)))


def timings(records: Records) -> dict[str, list[tuple[float, float]]]:
    """(size, seconds) of the kept records by recipe, one of each size."""
    names = ("recipe", "status", "n_classes", "shots", "n_test", "fit_seconds", "score_seconds")
    table = records.table(records.keys(failed=False), names)
    sizes: dict[str, dict[float, list[float]]] = {}
    for text, status, classes, shots, n_test, *took in zip(*(table[n].to_pylist() for n in names), strict=True):
        if status == "ok":
            sizes.setdefault(text, {}).setdefault(work(classes, shots, n_test), []).append(sum(took))
    return {words_of(json.loads(text)): _means(by_size.items()) for text, by_size in sizes.items()}


def _means(by_size: Iterable[tuple[float, list[float]]]) -> list[tuple[float, float]]:
    return [(size, sum(values) / len(values)) for size, values in by_size]


def work(classes: int, shots: int, n_test: int) -> float:
    """A number that grows like the seconds of a head: it is fitted to the shots and scores the test pictures."""
    return float(classes * (300 * max(shots, 1) * classes + 50 * n_test))


def words_of(recipe: object) -> str:
    return json.dumps(recipe, sort_keys=True, default=list)
