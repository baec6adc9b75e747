"""Is a batch of pictures worth more than its pictures one by one? Tables of docs/gauss-probe.md.

`python -m tools.together` draws shots of the sets with real CLIP features (`make clip-features`) by seeds that no study
uses (from 600 on), and queries from the test pictures in three ways: of all classes alike, of a quarter of the classes,
and with a long tail (class c of C is kept with probability 10^(−c/C), in random order). At most 500 queries. Points
minus the Gauss-probe, which sees every query alone, go to docs/gauss/together.csv; `--print` shows the tables only.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tools.calibration import drawn_task, with_interval

from kshot.bench.study import Cell
from kshot.data.store import Store
from kshot.methods.evidence import Task
from kshot.methods.gauss_together import GaussTogether, alone
from kshot.methods.transclip import TransCLIP
from kshot.stats.bootstrap import cluster_mean

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = ROOT / "docs" / "gauss" / "together.csv"
SETS = dict.fromkeys(("caltech101", "fgvc-aircraft", "food101", "ucf101", "dtd"), "ViT-B-16")
SETS |= {"whu-rs19": "ViT-L-14"}
HEADS = {"by hidden shots": GaussTogether(), "w = 4": GaussTogether(weight=4.0), "TransCLIP": TransCLIP(aligned=True)}
KINDS = ("all classes", "a quarter", "a long tail")
FIRST_SEED, MOST_QUERIES = 600, 500


def batch(kind: str, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of the queries."""
    C = int(y.max()) + 1
    place = rng.permutation(C)
    kept = {"all classes": np.ones(C), "a quarter": place < max(C // 4, 2), "a long tail": 10.0 ** (-place / C)}[kind]
    rows = np.flatnonzero(rng.random(len(y)) < kept[y])
    return np.sort(rng.permutation(rows)[:MOST_QUERIES])


def points(task: Task, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, float]]:
    """Accuracy minus the Gauss-probe's, and how often the hidden shots chose the batch."""
    before = np.mean(alone(task, X).argmax(axis=1) == y)
    for name, head in HEADS.items():
        head.fit(task.X, task.y, text=task.text, queries=X, classes=range(task.n_classes), constants=task.constants)
        yield name, 100 * float(np.mean(head.assignments_.argmax(axis=1) == y) - before)
    yield "used", 100.0 * (HEADS["by hidden shots"].selected_["weight"].value > 0)


def compute(draws: int) -> None:
    store = Store(ROOT / "features")
    with NUMBERS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("dataset", "shots", "seed", "batch", "head", "points"))
        for shots in (2, 4, 16):
            for dataset, backbone in SETS.items():
                for seed in range(FIRST_SEED, FIRST_SEED + draws):
                    if shots == 16 and dataset in ("food101", "dtd"):
                        continue
                    task, seen = drawn_task(Cell(dataset, backbone, "text", shots, seed), store)
                    for kind in KINDS:
                        asked = batch(kind, seen.test.y, np.random.default_rng(seed))
                        for name, value in points(task, seen.test.X[asked], seen.test.y[asked]):
                            rows.writerow((dataset, shots, seed, kind, name, f"{value:.3f}"))
                    file.flush()


def print_tables() -> None:
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    for kind in KINDS:
        shots = sorted({int(cell["shots"]) for cell in cells})
        print(f"\n| {kind}, minus Gauss-probe | " + " | ".join(f"K={k}" for k in shots) + " | worst set |")
        print("|" + "---|" * (len(shots) + 2))
        for name in (*HEADS, "used"):
            own = [cell for cell in cells if (cell["batch"], cell["head"]) == (kind, name)]
            line, means = [], []
            for k in shots:
                values = np.array([float(cell["points"]) for cell in own if int(cell["shots"]) == k])
                sets = np.array([cell["dataset"] for cell in own if int(cell["shots"]) == k])
                line.append(f"{values.mean():.0f} %" if name == "used" else with_interval(cluster_mean(values, sets)))
                means += [values[sets == one].mean() for one in set(sets)]
            worst = "" if name == "used" else f"{min(means):+.1f}".replace("-", "−")
            print(f"| {name} | " + " | ".join(line) + f" | {worst} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--print", action="store_true", dest="only_print")
    given = parser.parse_args()
    if not given.only_print:
        compute(given.draws)
    print_tables()
