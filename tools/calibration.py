"""Are the probabilities right? Calibration error and cross-entropy of the heads: the tables of docs/gauss-probe.md.

`python -m tools.calibration` reads features/ (`make clip-features`) and the bundled sets, fits the heads on the cells
of the study `gauss`, and judges them on the test pictures. Every head has a temperature that costs no further label:
the Gauss-probe its own, the others the one with the best likelihood on left-out shots (one of every class left out at a
time, until some 300 are scored). With one shot nothing can be left out, and heads are judged as they are. `--draws N`
takes the first N seeds only, `--dataset NAME` computes one set (repeatable). Answers are kept in records/calibration
and not computed again: remove its files of a head that has changed. The numbers of all that is there go to
docs/gauss/calibration.csv; `--print` shows its tables and computes nothing.

Pictures of all draws of one set and number of shots share their bins: with few pictures, most of the error of a single
cell is chance.
"""

import argparse
import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from kshot.bench.study import Cell, load_study
from kshot.data.episode import Revealed
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.files import write_atomically
from kshot.methods import registry
from kshot.methods.evidence import Task, part_of, prepare
from kshot.methods.selectors import fit_on
from kshot.solvers.folds import balanced_folds, ranks_by_text
from kshot.solvers.softmax import calibrate
from kshot.stats.bootstrap import Estimate, cluster_mean

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "records" / "calibration"
NUMBERS = ROOT / "docs" / "gauss" / "calibration.csv"
BINS = 15
OURS = "gauss_probe"
HEADS = (OURS, "clap", "lpp", "fold_gda")
# Enough left-out shots for one temperature.
MOST_LEFT_OUT = 300
GROUPS: dict[str, Callable[[int], bool]] = {"K=1": lambda k: k == 1, "K=2": lambda k: k == 2, "K≥4": lambda k: k >= 4}


class Answers(NamedTuple):
    """How sure a head was of its answers, and which were right."""

    confidence: np.ndarray
    hits: np.ndarray


class Judged(NamedTuple):
    """A head's answers in one cell, and their cross-entropy."""

    answers: Answers
    cross_entropy: float


def answers(logits: np.ndarray, y: np.ndarray) -> Answers:
    probabilities = softmax(logits, axis=1)
    return Answers(probabilities.max(axis=1), probabilities.argmax(axis=1) == y)


def calibration_error(given: Answers) -> float:
    """In per cent, over bins of equally many pictures: |hits − confidence|, summed and divided by the pictures."""
    bins = np.array_split(np.argsort(given.confidence, kind="stable"), BINS)
    gaps = (abs(float(given.hits[b].sum() - given.confidence[b].sum())) for b in bins)
    return 100 * sum(gaps) / len(given.hits)


def together(several: Iterable[Answers]) -> Answers:
    return Answers(*(np.concatenate(part) for part in zip(*several, strict=True)))


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> float:
    return -float(log_softmax(logits, axis=1)[np.arange(len(y)), y].mean())


def free_temperature(key: str, task: Task) -> float:
    """The temperature of the best likelihood on left-out shots."""
    scores, labels = [], []
    for kept, asked in balanced_folds(ranks_by_text(task.X, task.y, task.text), task.y, MOST_LEFT_OUT):
        scores.append(fit_on(registry.create(key), part_of(task, kept)).scores(task.X[asked]))
        labels.append(task.y[asked])
    return calibrate(np.concatenate(scores), np.concatenate(labels))


def judge(key: str, task: Task, X: np.ndarray, y: np.ndarray) -> Judged:
    logits = fit_on(registry.create(key), task).scores(X).astype(np.float64)
    if key != OURS and task.counts.max() > 1:
        logits /= free_temperature(key, task)
    return Judged(answers(logits, y), cross_entropy(logits, y))


def kept_file(cell: Cell, key: str) -> Path:
    return KEPT / f"{cell.dataset}-{cell.shots}-{cell.seed}-{key}.npz"


def drawn_task(cell: Cell, store: Store, most_of_class: float = 1.0) -> tuple[Task, Revealed]:
    """The shots of a cell as our head gets them, at most this share of a class's pool, and all that the cell has."""
    where = cell.dataset, cell.backbone
    stratum, prior = load_stratum(store, *where), load_prior(store, *where, cell.tier)
    most = int(most_of_class * np.median(np.bincount(stratum.pool.y)))
    episode = stratum.episode(min(cell.shots, most), cell.seed, prior)
    seen = episode.reveal(frozenset({"support", "pool", "test"}))
    info = registry.info(OURS)
    return prepare(info, 1, *seen.support, text=prior.text, constants=episode.constants(info.sees)), seen


def compute(cells: Iterable[Cell], store: Store) -> None:
    """Judge every head on every cell that is not kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for cell in cells:
        missing = [key for key in HEADS if not kept_file(cell, key).exists()]
        if missing:
            task, seen = drawn_task(cell, store)
            for key in missing:
                found = judge(key, task, *seen.test)
                write_atomically(kept_file(cell, key), lambda path, found=found: save(path, found))


def save(path: Path, found: Judged) -> None:
    with path.open("wb") as file:
        np.savez(file, confidence=found.answers.confidence, hits=found.answers.hits, nll=found.cross_entropy)


class Numbers(NamedTuple):
    """Calibration error in per cent and cross-entropy."""

    error: float
    cross_entropy: float


# By head, then by dataset and shots.
Found = dict[str, dict[tuple[str, int], Numbers]]


def write_numbers(cells: Iterable[Cell]) -> None:
    """The numbers of every head, set and number of shots, over the draws that all heads have."""
    draws: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        if all(kept_file(cell, key).exists() for key in HEADS):
            draws.setdefault((cell.dataset, cell.shots), []).append(cell)
    with NUMBERS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("head", "dataset", "shots", "draws", "error", "nll"))
        for key in HEADS:
            for (dataset, shots), own in draws.items():
                error, nll = over_draws([load(kept_file(cell, key)) for cell in own])
                rows.writerow((key, dataset, shots, len(own), f"{error:.3f}", f"{nll:.4f}"))


def load(path: Path) -> Judged:
    with np.load(path) as file:
        return Judged(Answers(file["confidence"], file["hits"]), float(file["nll"]))


def over_draws(draws: list[Judged]) -> Numbers:
    """The draws share their bins."""
    nll = float(np.mean([one.cross_entropy for one in draws]))
    return Numbers(calibration_error(together(one.answers for one in draws)), nll)


def read_numbers() -> Found:
    found: Found = {}
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = Numbers(float(row["error"]), float(row["nll"]))
            found.setdefault(row["head"], {})[row["dataset"], int(row["shots"])] = numbers
    return found


def by_set(found: dict[tuple[str, int], Numbers], wanted: Callable[[int], bool]) -> dict[str, Numbers]:
    """Each set's means over the wanted numbers of shots."""
    of_set: dict[str, list[Numbers]] = {}
    for (dataset, shots), numbers in found.items():
        if wanted(shots):
            of_set.setdefault(dataset, []).append(numbers)
    return {dataset: Numbers(*np.mean(own, axis=0).tolist()) for dataset, own in of_set.items()}


def paired(ours: dict[str, Numbers], other: dict[str, Numbers], sets: set[str], column: int) -> Estimate:
    """Ours minus the other's over these sets."""
    names = [dataset for dataset in ours if dataset in sets]
    return cluster_mean(np.array([ours[name][column] - other[name][column] for name in names]), np.array(names))


def print_tables(found: Found) -> None:
    open_sets = {cell.dataset for cell in load_study("gauss").cells() if cell.backbone == "lite0"}
    everything = {key: by_set(of, lambda k: k > 1) for key, of in found.items()}
    print("\nK ≥ 2, free temperatures: calibration error in per cent, then NLL\n")
    print("| | " + " | ".join([*HEADS, *(f"NLL, {key}" for key in HEADS)]) + " |\n|" + "---|" * (2 * len(HEADS) + 1))
    for dataset in everything[OURS]:
        numbers = [everything[key][dataset] for key in HEADS]
        shown = [f"{x.error:.2f}" for x in numbers] + [f"{x.cross_entropy:.3f}" for x in numbers]
        print(f"| {dataset} | " + " | ".join(shown) + " |")
    sets = set(everything[OURS])
    kinds = {"open": sets & open_sets, "CLIP": sets - open_sets, "all": sets}
    for kind, names in kinds.items():
        print(f"\n| gauss-probe minus, {kind} {len(names)} sets | " + " | ".join(GROUPS) + " |\n|" + "---|" * 4)
        for column, what in ((1, "NLL"), (0, "calibration error")):
            for key in HEADS[1:]:
                numbers = [(by_set(found[OURS], wanted), by_set(found[key], wanted)) for wanted in GROUPS.values()]
                line = [with_interval(paired(*of, names, column), digits=2 + column) for of in numbers]
                print(f"| {registry.info(key).title}, {what} | " + " | ".join(line) + " |")


def with_interval(e: Estimate, digits: int = 2) -> str:
    if e.low is None:
        return "–"
    return f"{e.mean:+.{digits}f} [{e.low:+.{digits}f}, {e.high:+.{digits}f}]".replace("-", "−")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--print", action="store_true", dest="only_print")
    given = parser.parse_args()
    cells = [cell for cell in load_study("gauss").cells() if cell.seed < given.draws]
    cells = [cell for cell in cells if given.dataset is None or cell.dataset in given.dataset]
    cells = sorted(cells, key=lambda cell: (cell.seed, cell.shots))
    if not given.only_print:
        compute(cells, Store(ROOT / "features"))
        write_numbers(cell for cell in load_study("gauss").cells() if cell.seed < given.draws)
    print_tables(read_numbers())


if __name__ == "__main__":
    main()
