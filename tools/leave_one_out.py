"""Choose a rule of ours on all sets but one and report on that one, for every set: tables of the pages of our heads.

`python -m tools.leave_one_out` draws shots from the pools of fourteen sets by seeds that no report uses (from 400 on)
and computes every variant of the Gauss-probe and of fold-GDA below. A variant is chosen, for each number of shots, by
its mean accuracy on the pool pictures outside the shots of thirteen sets; its figure is that on the fourteenth, whose
test pictures nothing has seen. Every cell's numbers are kept in records/leave-one-out, and a variant that is there is
not computed again. `--draws N` takes N seeds, `--shots K` and `--dataset NAME` (repeatable) compute a part. The means
of all cells that are there go to docs/gauss/leave-one-out.csv; `--print` shows its tables and computes nothing.
"""

import argparse
import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from tools.ablate_gauss import LARGEST_SHARE, Parts
from tools.ablate_gauss import VARIANTS as ABLATED
from tools.calibration import drawn_task, with_interval

from kshot.bench.study import Cell, load_study
from kshot.data.store import Store
from kshot.files import write_text
from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, average_view
from kshot.methods.fast_probe import learn_probe
from kshot.methods.fold_gda import FoldGDA
from kshot.methods.gauss_probe import GaussProbe
from kshot.methods.selectors import fit_on
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import spread, text_scale
from kshot.stats.bootstrap import Estimate, cluster_mean

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "records" / "leave-one-out"
MEANS = ROOT / "docs" / "gauss" / "leave-one-out.csv"
FIRST_SEED = 400
HEAD, FOLD, RIVAL = "gauss-probe", "fold-GDA", "CLAP"
COLUMNS = ("group", "dataset", "variant", "cells", "pool", "test")
GROUPS = {"K=1": (1,), "K=2": (2,), "K≥4": (4, 8, 16)}


class Drawn:
    """One draw: heads fitted on its shots, each once, and their scores of the pictures that judge."""

    def __init__(self, task: Task, X: np.ndarray):
        self.task, self.X, self.shots = task, X, average_view(task)

    def head(self, key: str) -> np.ndarray:
        """Scores of a registered head."""
        return self.scaled(fit_on(registry.create(key), self.task))

    def scaled(self, head: Classifier) -> np.ndarray:
        """Scores divided by their spread over the shots, so that two heads can be added."""
        return head.scores(self.X) / spread(head.scores(self.shots))

    @cached_property
    def clap(self) -> np.ndarray:
        return self.head("clap")

    @cached_property
    def lpp(self) -> np.ndarray:
        return self.head("lpp")

    @cached_property
    def ours(self) -> np.ndarray:
        return self.head("gauss_probe")

    @cached_property
    def gaussian(self) -> np.ndarray:
        return self.head("fold_gda")

    @cached_property
    def text(self) -> np.ndarray:
        return self.X @ self.task.text.T / spread(self.shots @ self.task.text.T)

    @cached_property
    def told(self) -> float:
        """Information of the text about the shots, as a share of log C."""
        scores = self.shots @ (self.task.logit_scale * self.task.text).T
        return text_scale(scores, self.task.y).information / np.log(max(self.task.n_classes, 2))

    @cached_property
    def likeness(self) -> float:
        """Correlation of the products of centred texts with those of centred shots, over pairs of different classes."""
        X, T = self.shots[np.argsort(self.task.y, kind="stable")], self.task.text
        pairs = ~np.eye(len(T), dtype=bool)
        products = [(rows @ rows.T)[pairs] for rows in (X - X.mean(axis=0), T - T.mean(axis=0))]
        return max(float(np.corrcoef(*products)[0, 1]), 0.0)

    @cached_property
    def parts(self) -> Parts:
        return Parts(self.task, GaussProbe(), self.X)

    def probe(self, pull: float, iterations: int = 12) -> np.ndarray:
        """The probe under so many times CLAP's penalties."""
        rows = unit_prototypes(learn_probe(self.task, iterations, pull=float(pull))[0])
        return self.X @ rows.T / spread(self.shots @ rows.T)


Variant = Callable[[Drawn], np.ndarray]
BOTH: dict[str, Variant] = {
    HEAD: lambda d: d.ours,
    RIVAL: lambda d: d.clap,
    "LP++": lambda d: d.lpp,
    "gauss-probe + CLAP": lambda d: d.ours + d.clap,
    "gauss-probe + LP++": lambda d: d.ours + d.lpp,
    "CLAP + LP++": lambda d: d.clap + d.lpp,
    "gauss-probe + ½ text": lambda d: d.ours + d.text / 2,
    "CLAP where text tells more than half, else gauss-probe": lambda d: d.clap if d.told > 0.5 else d.ours,
    "gauss-probe where text tells more than half, else CLAP": lambda d: d.ours if d.told > 0.5 else d.clap,
    "CLAP from 50 classes on, else gauss-probe": lambda d: d.clap if d.task.n_classes >= 50 else d.ours,
}
ONE_SHOT: dict[str, Variant] = BOTH | {
    "penalties × 1": lambda d: d.probe(1),
    "penalties × 2": lambda d: d.probe(2),
    "penalties × 4": lambda d: d.probe(4),
    "penalties × 16": lambda d: d.probe(16),
    "penalties × (1 + 3·i²)": lambda d: d.probe(1 + 3 * d.told**2),
    "penalties × (1 + 7·i²)": lambda d: d.probe(1 + 7 * d.told**2),
    "penalties × (1 + 30·i²)": lambda d: d.probe(1 + 30 * d.told**2),
    "penalties × (1 + 15·i)": lambda d: d.probe(1 + 15 * d.told),
    "penalties × (1 + 15·i⁴)": lambda d: d.probe(1 + 15 * d.told**4),
    "penalties × (1 + 15·i²·likeness)": lambda d: d.probe(1 + 15 * d.told**2 * d.likeness),
    "penalties × (1 + 30·i²·likeness²)": lambda d: d.probe(1 + 30 * d.told**2 * d.likeness**2),
    "penalties × 1 and × 16, added": lambda d: d.probe(1) + d.probe(16),
    "forty iterations": lambda d: d.probe(1 + 15 * d.told**2, 40),
}
ABLATIONS = (
    *("the probe alone", "fold-GDA alone", "equal weights", "prior on the ratio half as wide"),
    *("prior on the ratio twice as wide", "penalties × 1", "penalties × 4", "penalties × 16"),
    *("penalties as at one shot", "the best of these four by the halves", "text as a third side"),
)
MORE_SHOTS: dict[str, Variant] = (
    BOTH
    | {name: lambda d, variant=ABLATED[name]: variant(d.parts) for name in ABLATIONS}
    | {
        "probe : fold-GDA = 4 : 1": lambda d: d.parts.total(tuple(d.parts.pair), np.array([1, 0.25])),
        "probe : fold-GDA = 2 : 1": lambda d: d.parts.total(tuple(d.parts.pair), np.array([1, 0.5])),
        "probe : fold-GDA = 1 : 2": lambda d: d.parts.total(tuple(d.parts.pair), np.array([1, 2.0])),
        "CLAP + fold-GDA": lambda d: d.clap + d.gaussian,
        "2·CLAP + fold-GDA": lambda d: 2 * d.clap + d.gaussian,
        "CLAP + LP++ + fold-GDA": lambda d: d.clap + d.lpp + d.gaussian,
    }
)
FOLD_GDA: dict[str, Variant] = {FOLD: lambda d: d.gaussian} | {
    f"{FOLD} without {part}": lambda d, part=part: d.scaled(fit_on(FoldGDA(**{part: False}), d.task))
    for part in ("folds", "downdate", "text_prior", "average", "k_correction")
}
# What is chosen among, by head; the Gauss-probe's depend on the shots.
FAMILIES: dict[str, tuple[dict[str, Variant], dict[str, Variant]]] = {
    HEAD: (ONE_SHOT, MORE_SHOTS),
    FOLD: ({}, FOLD_GDA),
}


def variants(shots: int) -> dict[str, Variant]:
    """All that are computed."""
    return ONE_SHOT if shots == 1 else MORE_SHOTS | FOLD_GDA


def names_of(head: str, group: str, means: "Means") -> list[str]:
    """The family's variants that every set has."""
    family = FAMILIES[head][min(GROUPS[group]) > 1]
    return [name for name in family if all(name in of for of in means.values())]


def kept_file(cell: Cell) -> Path:
    return KEPT / f"{cell.dataset}-{cell.shots}-{FIRST_SEED + cell.seed}.json"


def kept(cell: Cell) -> dict[str, list[float]]:
    return json.loads(kept_file(cell).read_text(encoding="utf-8")) if kept_file(cell).exists() else {}


def compute(cell: Cell, store: Store) -> None:
    """Add what is missing to the cell's file."""
    known = kept(cell)
    missing = {name: made for name, made in variants(cell.shots).items() if name not in known}
    if not missing:
        return
    task, seen = drawn_task(replace(cell, seed=FIRST_SEED + cell.seed), store, LARGEST_SHARE)
    judges = np.concatenate([seen.pool.X, seen.test.X]), np.concatenate([seen.pool.y, seen.test.y])
    drawn, n = Drawn(task, judges[0]), len(seen.pool.y)
    for name, made in missing.items():
        hits = made(drawn).argmax(axis=1) == judges[1]
        known[name] = [100 * float(hits[:n].mean()), 100 * float(hits[n:].mean())]
    write_text(kept_file(cell), json.dumps(known, indent=1, ensure_ascii=False) + "\n")


# Accuracy by dataset and variant, the mean over a dataset's cells.
Means = Mapping[str, Mapping[str, float]]


def chosen_without(means: Means, left_out: str, names: list[str], cautious: bool = False) -> str:
    """The variant with the best mean over the other sets, or with the best lower end of the interval of its lead on the
    rival; the first of equals."""

    def worth(name: str) -> float:
        leads = {dataset: of[name] - of[RIVAL] for dataset, of in means.items() if dataset != left_out}
        if not cautious:
            return float(np.mean(list(leads.values())))
        low = over_sets(leads).low
        assert low is not None, "three other sets give an interval"
        return low

    return max(names, key=worth)


AS_IT_IS = "the head as it is"
# Each gives the variant of every set, the first of the names being the head.
RULES: dict[str, Callable[[Means, list[str]], dict[str, str]]] = {
    "chosen by the mean": lambda means, names: {d: chosen_without(means, d, names) for d in means},
    "by the lower end": lambda means, names: {d: chosen_without(means, d, names, cautious=True) for d in means},
    AS_IT_IS: lambda means, names: dict.fromkeys(means, names[0]),
}


def over_sets(differences: Mapping[str, float]) -> Estimate:
    return cluster_mean(np.array(list(differences.values())), np.array(list(differences)))


def report(head: str, group: str, pool: Means, test: Means, open_sets: set[str]) -> None:
    """Every variant minus the rival, then what choosing on the other sets gives."""
    names = names_of(head, group, pool)
    print(f"\n{head}, {group}: {len(pool)} sets, {len(names)} variants\n")
    print(f"| minus {RIVAL} | pool, open | pool, CLIP | test, open | test, CLIP | test, all | chosen for |")
    print("|" + "---|" * 7)
    choices = RULES["chosen by the mean"](pool, names)
    for name in names:
        cells = []
        for means in (pool, test):
            for kind in (True, False):
                own = [of[name] - of[RIVAL] for dataset, of in means.items() if (dataset in open_sets) == kind]
                cells.append(f"{np.mean(own):+.2f}".replace("-", "−") if own else "–")
        whole = over_sets({dataset: of[name] - of[RIVAL] for dataset, of in test.items()})
        print(f"| {name} | {' | '.join(cells)} | {with_interval(whole)} | {list(choices.values()).count(name) or ''} |")
    print(f"\n| left-out set, test, minus {RIVAL} | {' | '.join(RULES)} |\n|" + "---|" * (1 + len(RULES)))
    chosen = {rule: choose(pool, names) for rule, choose in RULES.items()}
    for dataset in pool:
        leads = [f"{lead(test, dataset, of[dataset], RIVAL):+.2f}".replace("-", "−") for of in chosen.values()]
        cells = [f"{one} ({of[dataset]})" for one, of in zip(leads, chosen.values(), strict=True)]
        print(f"| {dataset} | {' | '.join(cells)} |")


def left_out(head: str, rule: str, minus: str) -> dict[str, Estimate]:
    """By group: the lead over all sets of what the rule gives each of them."""
    pool, test = read_means("pool"), read_means("test")
    found = {}
    for group, means in pool.items():
        if names := names_of(head, group, means):
            chosen = RULES[rule](means, names)
            found[group] = over_sets({d: lead(test[group], d, chosen[d], minus) for d in means})
    return found


def summary(head: str) -> None:
    """The head as it is and the choices without the set, over all sets."""
    for minus in (RIVAL, head):
        rules = [rule for rule in RULES if minus == RIVAL or rule != AS_IT_IS]
        lines = {rule: left_out(head, rule, minus) for rule in rules}
        groups = list(next(iter(lines.values())))
        print(f"\n| {head} minus {minus}, left-out set | {' | '.join(groups)} |\n|" + "---|" * (1 + len(groups)))
        for rule, of in lines.items():
            print(f"| {rule} | {' | '.join(map(with_interval, of.values()))} |")


def lead(means: Means, dataset: str, name: str, minus: str) -> float:
    return means[dataset][name] - means[dataset][minus]


def write_means() -> None:
    """Mean accuracies of each group, set and variant over the kept cells."""
    found: dict[tuple[str, str, str], list[list[float] | None]] = {}
    of_shots = {k: group for group, shots in GROUPS.items() for k in shots}
    for cell in load_study("gauss").cells():
        if cell.seed == 0:
            for file in sorted(KEPT.glob(f"{cell.dataset}-{cell.shots}-*.json")):
                numbers = json.loads(file.read_text(encoding="utf-8"))
                for name in variants(cell.shots):
                    found.setdefault((of_shots[cell.shots], cell.dataset, name), []).append(numbers.get(name))
    with MEANS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for key, own in found.items():
            # Means over other cells than the rival's would not be paired.
            known = [numbers for numbers in own if numbers is not None]
            if len(known) == len(own):
                rows.writerow([*key, len(own), *(f"{mean:.3f}" for mean in np.mean(known, axis=0))])


def read_means(column: str) -> dict[str, dict[str, dict[str, float]]]:
    """By group, set and variant."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with MEANS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["group"], {}).setdefault(row["dataset"], {})[row["variant"]] = float(row[column])
    return found


def print_tables() -> None:
    open_sets = {cell.dataset for cell in load_study("gauss").cells() if cell.backbone == "lite0"}
    pool, test = read_means("pool"), read_means("test")
    for head in FAMILIES:
        for group in pool:
            if names_of(head, group, pool[group]):
                report(head, group, pool[group], test[group], open_sets)
        summary(head)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--shots", action="append", type=int)
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--print", action="store_true", dest="only_print")
    given = parser.parse_args()
    first = [cell for cell in load_study("gauss").cells() if cell.seed == 0]
    first = [cell for cell in first if given.dataset is None or cell.dataset in given.dataset]
    first = [cell for cell in first if given.shots is None or cell.shots in given.shots]
    cells = [replace(cell, seed=seed) for seed in range(given.draws) for cell in first]
    if not given.only_print:
        KEPT.mkdir(parents=True, exist_ok=True)
        for cell in cells:
            compute(cell, Store(ROOT / "features"))
        write_means()
    print_tables()


if __name__ == "__main__":
    main()
