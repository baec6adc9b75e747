"""Choose the rule for one shot on all sets but one, or all families of encoders but one, and judge it on the one.

`python -m tools.leave_one_out` draws one shot of every class from the pools of eight sets with real CLIP features (one
of them through six encoders) and of seven open ones, by seeds that no report uses (from 400 on), and computes every
variant below. A variant is chosen by its mean accuracy on pool pictures outside the shots; its figure is that on the
test pictures of the one left out, at most 2,000. A set's encoders are averaged: sets are the clusters. `--draws N`
takes N seeds, `--dataset NAME` (repeatable) computes a part. The means go to docs/gauss/leave-one-out.csv, which also
holds those of two and more shots (K=2, K≥4: an earlier choice, not computed any more); `--print` shows the tables only.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tools.calibration import cross_entropy, drawn_task, with_interval

from kshot.bench.study import Cell, load_study
from kshot.data.store import Store
from kshot.methods import registry
from kshot.methods.evidence import Task, average_view
from kshot.methods.fast_probe import learn_probe
from kshot.methods.selectors import fit_on
from kshot.methods.single_shots import spherical_head
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import rival_spread, text_scale
from kshot.stats.bootstrap import Estimate, cluster_mean

ROOT = Path(__file__).resolve().parents[1]
MEANS = ROOT / "docs" / "gauss" / "leave-one-out.csv"
FIRST_SEED, MOST_JUDGED = 400, 2000
HEAD, RIVAL, BEFORE = "gauss-probe", "CLAP", "the probe alone"
COLUMNS: tuple[str, ...] = ("group", "dataset", "variant", "cells", "pool", "test", "nll")
GROUPS = {"K=1": (1,), "K=2": (2,), "K≥4": (4, 8, 16)}
ONE_SHOT = "K=1"
FAMILIES = {"GeoRSCLIP-B-32": "aerial", "SkyCLIP-B-32": "aerial", "RemoteCLIP-B-32": "aerial", "lite0": "lite"}
OTHERS = "OpenAI"


class Drawn:
    """One draw: heads fitted on its shots, each once, and their scores of the pictures that judge."""

    def __init__(self, task: Task, X: np.ndarray):
        self.task, self.X, self.shots = task, X, average_view(task)

    def scaled(self, coef: np.ndarray, intercept: Any = 0.0) -> np.ndarray:
        return (self.X @ coef.T + intercept) / rival_spread(self.shots @ coef.T + intercept, self.task.y)

    def logits(self, key: str) -> np.ndarray:
        """Those of a registered head."""
        return fit_on(registry.create(key), self.task).scores(self.X)

    def head(self, key: str) -> np.ndarray:
        """Those over its spread."""
        fitted = fit_on(registry.create(key), self.task)
        return self.scaled(fitted.coef_, fitted.intercept_)

    def probe(self, pull: float) -> np.ndarray:
        return self.scaled(unit_prototypes(learn_probe(self.task, 12, pull=pull)[0]))

    @cached_property
    def i(self) -> float:
        """Information of the text about the shots, as a share of log C."""
        scores = self.shots @ (self.task.logit_scale * self.task.text).T
        return text_scale(scores, self.task.y).information / np.log(max(self.task.n_classes, 2))

    @cached_property
    def g(self) -> np.ndarray:
        return self.probe(1 + 15 * self.i**2)

    @cached_property
    def a(self) -> np.ndarray:
        return self.head("taskres")

    @cached_property
    def e(self) -> np.ndarray:
        return self.scaled(*spherical_head(self.task))

    @cached_property
    def clap(self) -> np.ndarray:
        return self.head("clap")

    @cached_property
    def lpp(self) -> np.ndarray:
        return self.head("lpp")

    def r(self, least: float = 1 / 8, fall: float = 4) -> float:
        return least + (1 - least) * (1 - self.i) ** fall


VARIANTS: dict[str, Callable[[Drawn], np.ndarray]] = {
    HEAD: lambda d: d.g + d.a + 2 * d.r() * d.e,
    RIVAL: lambda d: d.clap,
    BEFORE: lambda d: d.g,
    "TaskRes": lambda d: d.a,
    "LP++": lambda d: d.lpp,
    "g + A": lambda d: d.g + d.a,
    "g + ¼E": lambda d: d.g + d.e / 4,
    "g + rE": lambda d: d.g + d.r() * d.e,
    "A + ¼E": lambda d: d.a + d.e / 4,
    "A + rE": lambda d: d.a + d.r() * d.e,
    "g + A + ¼E": lambda d: d.g + d.a + d.e / 4,
    "g + A + ½E": lambda d: d.g + d.a + d.e / 2,
    "g + A + E": lambda d: d.g + d.a + d.e,
    "g + A + 2E": lambda d: d.g + d.a + 2 * d.e,
    "r falls by (1−i)²": lambda d: d.g + d.a + 2 * d.r(fall=2) * d.e,
    "r falls by (1−i)⁸": lambda d: d.g + d.a + 2 * d.r(fall=8) * d.e,
    "r from 0": lambda d: d.g + d.a + 2 * d.r(0) * d.e,
    "r from ¼": lambda d: d.g + d.a + 2 * d.r(1 / 4) * d.e,
    "g + 2A + 3rE": lambda d: d.g + 2 * d.a + 3 * d.r() * d.e,
    "CLAP + A": lambda d: d.clap + d.a,
    "CLAP + A + 2rE": lambda d: d.clap + d.a + 2 * d.r() * d.e,
    "g + LP++": lambda d: d.g + d.lpp,
    "g + A + LP++": lambda d: d.g + d.a + d.lpp,
    "g + A + LP++ + 3rE": lambda d: d.g + d.a + d.lpp + 3 * d.r() * d.e,
}
LOGITS = {HEAD: "gauss_probe", RIVAL: "clap", "TaskRes": "taskres", "LP++": "lpp"}

# Accuracy by stratum and variant.
Means = Mapping[str, Mapping[str, float]]


def compute(cells: list[Cell], store: Store) -> Iterator[tuple[str, str, float, float, float]]:
    """Stratum, variant, and the accuracies and log-loss of one draw after the other."""
    for cell in cells:
        task, seen = drawn_task(replace(cell, shots=1), store)
        rng = np.random.default_rng(cell.seed)
        parts = [(part.X[kept], part.y[kept]) for part in (seen.pool, seen.test) for kept in [sample(part.y, rng)]]
        drawn, n = Drawn(task, np.concatenate([X for X, _ in parts])), len(parts[0][1])
        y = np.concatenate([labels for _, labels in parts])
        for name, made in VARIANTS.items():
            hits = made(drawn).argmax(axis=1) == y
            nll = cross_entropy(drawn.logits(LOGITS[name])[n:], y[n:]) if name in LOGITS else np.nan
            yield f"{cell.dataset}/{cell.backbone}", name, 100 * hits[:n].mean(), 100 * hits[n:].mean(), nll


def sample(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(len(y))[:MOST_JUDGED]


def over_sets(lead: Mapping[str, float]) -> Estimate:
    """The mean over sets; strata of one set are averaged first."""
    sets: dict[str, list[float]] = {}
    for place, value in lead.items():
        sets.setdefault(dataset(place), []).append(value)
    return cluster_mean(np.array([np.mean(own) for own in sets.values()]), np.array(list(sets)))


def family(place: str) -> str:
    return FAMILIES.get(place.partition("/")[2], OTHERS)


def chosen_without(means: Means, left_out: Callable[[str], bool], names: list[str]) -> str:
    """The variant with the best mean over the sets that are not left out; the first of equals."""
    kept = [place for place in means if not left_out(place)]
    return max(names, key=lambda name: over_sets({p: means[p][name] - means[p][RIVAL] for p in kept}).mean)


def choices(means: Means, by: Callable[[str], str]) -> dict[str, str]:
    """The variant for each stratum, chosen without all that are `by` the same."""
    names = [name for name in next(iter(means.values())) if all(name in of for of in means.values())]
    groups = {by(place) for place in means}
    chosen = {one: chosen_without(means, lambda place, one=one: by(place) == one, names) for one in groups}
    return {place: chosen[by(place)] for place in means}


def dataset(place: str) -> str:
    return place.split("/")[0]


def left_out(minus: str = RIVAL) -> dict[str, Estimate]:
    """By group of shots: the lead over all sets of what is chosen without each of them."""
    pool, test = read_means("pool"), read_means("test")
    chosen = {group: choices(means, dataset) for group, means in pool.items()}
    return {
        group: over_sets({p: test[group][p][name] - test[group][p][minus] for p, name in of.items()})
        for group, of in chosen.items()
    }


def write_means(rows: Iterator[tuple[str, str, float, float, float]]) -> None:
    found: dict[tuple[str, str], list[list[float]]] = {}
    for place, name, *values in rows:
        found.setdefault((place, name), []).append(values)
    with MEANS.open(encoding="utf-8", newline="") as file:
        kept = [
            row
            for row in csv.DictReader(file)
            if row["group"] != ONE_SHOT or (row["dataset"], row["variant"]) not in found
        ]
    new = [
        dict(zip(COLUMNS, (ONE_SHOT, *key, len(own), *(f"{mean:.3f}" for mean in np.mean(own, axis=0))), strict=True))
        for key, own in found.items()
    ]
    with MEANS.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(sorted([*new, *kept], key=lambda row: row["group"]))


def read_means(column: str) -> dict[str, dict[str, dict[str, float]]]:
    """By group, stratum and variant."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with MEANS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row[column]:
                found.setdefault(row["group"], {}).setdefault(row["dataset"], {})[row["variant"]] = float(row[column])
    return found


def print_tables() -> None:
    pool, test, nll = (read_means(column)[ONE_SHOT] for column in ("pool", "test", "nll"))
    kinds = {"real": lambda p: family(p) != "lite", "open": lambda p: family(p) == "lite", "all": lambda p: True}
    print(f"\nOne shot, {len(pool)} strata, {len(VARIANTS)} variants; points minus {RIVAL}, test\n")
    print(f"| variant | {' | '.join(kinds)} | chosen without set | without family |\n|---|---|---|---|---|---|")
    without_set, without_family = choices(pool, dataset), choices(pool, family)
    for name in VARIANTS:
        leads = [over_sets({p: of[name] - of[RIVAL] for p, of in test.items() if keep(p)}) for keep in kinds.values()]
        counts = (
            len({by(p) for p, n in of.items() if n == name})
            for by, of in ((dataset, without_set), (family, without_family))
        )
        print(f"| {name} | {' | '.join(map(with_interval, leads))} | {' | '.join(str(n or '') for n in counts)} |")
    print(f"\n| chosen without it, minus | {' | '.join(kinds)} |\n|---|---|---|---|")
    for words, chosen in (("the set", without_set), ("the family of encoders", without_family)):
        for minus in (RIVAL, BEFORE, HEAD):
            leads = [
                over_sets({p: test[p][n] - test[p][minus] for p, n in chosen.items() if keep(p)})
                for keep in kinds.values()
            ]
            print(f"| {words}: {minus} | {' | '.join(map(with_interval, leads))} |")
    heads = [name for name in (BEFORE, *LOGITS) if name != HEAD]
    print(
        f"\n| {HEAD} minus | {' | '.join(heads)} | log-loss: {' | '.join(LOGITS)} |\n|"
        + "---|" * (1 + len(heads) + len(LOGITS))
    )
    for place, of in test.items():
        leads = " | ".join(f"{of[HEAD] - of[name]:+.1f}".replace("-", "−") for name in heads)
        print(f"| {place} | {leads} | {' | '.join(f'{nll[place][name]:.2f}' for name in LOGITS)} |")
    print("\n| minus CLAP, chosen without the set | " + " | ".join(GROUPS) + " |\n|---|---|---|---|")
    found = left_out()
    print("| gauss-probe | " + " | ".join(with_interval(found[group]) for group in GROUPS) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--print", action="store_true", dest="only_print")
    given = parser.parse_args()
    if not given.only_print:
        studies = [load_study(name).cells() for name in ("gauss", "clip")]
        first = [replace(c, seed=0, shots=1) for cells in studies for c in cells if c.tier in ("dataset", "text")]
        first = [c for c in dict.fromkeys(first) if given.dataset is None or c.dataset in given.dataset]
        cells = [replace(cell, seed=FIRST_SEED + seed) for seed in range(given.draws) for cell in first]
        write_means(compute(cells, Store(ROOT / "features")))
    print_tables()


if __name__ == "__main__":
    main()
