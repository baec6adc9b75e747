"""What committed records say of the heads: tables for docs/gauss-probe.md, and the advice of `kshot fit`.

`python -m tools.evidence` prints the tables and writes src/kshot/pictures/evidence.json. Cells of several studies are
the same where dataset, backbone, tier, shots, seed and the hashes of the features are. Intervals are over datasets; a
set whose draws are all the same shots has no standard error of its draws.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from tools.calibration import with_interval
from tools.update_clip import single_draws

from kshot.bench.records import load_table
from kshot.stats.bootstrap import Estimate, cluster_mean
from tools import leave_one_out

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "docs" / name / "records" for name in ("open", "clip", "gauss")]
WRITTEN = ROOT / "src" / "kshot" / "pictures" / "evidence.json"
TIERS = ("dataset", "text")
HEADS = ("zero_shot", "loo_blend", "clap", "lpp", "fold_gda", "fast_probe", "gauss_probe")
OURS = "gauss_probe"
SHOTS = (1, 2, 4, 8, 16)
REAL = ("stanford-cars", "fgvc-aircraft", "caltech101", "food101", "ucf101", "dtd", "imagenet")
# Heads compared with CLAP, on all sets and on each kind.
COMPARED = {"gauss_probe": "Gauss-probe", "fold_gda": "Fold-GDA", "lpp": "LP++", "fast_probe": "fast probe"}
GOOD_TEXT = 50.0
FEW_CLASSES = 10

Cell = tuple[str, int, int]


def read(folders: Iterable[Path]) -> tuple[dict[str, dict[Cell, float]], dict[str, int]]:
    """Accuracy in per cent by method and (dataset, shots, seed), and the number of classes by dataset."""
    accuracy: dict[str, dict[Cell, float]] = {}
    hashes: dict[Cell, str] = {}
    classes: dict[str, int] = {}
    wanted = ("dataset", "tier", "shots", "seed", "method", "status", "accuracy", "n_classes", "feature_hashes")
    for folder in folders:
        columns = load_table(folder).select(wanted).to_pydict()
        for dataset, tier, shots, seed, method, status, value, C, features in zip(*columns.values(), strict=True):
            if status == "ok" and tier in TIERS:
                cell = dataset, shots, seed
                if hashes.setdefault(cell, features) != features:
                    sys.exit(f"{folder}: {cell} was computed on other features than in the folders before.")
                accuracy.setdefault(method, {})[cell] = 100 * value
                classes[dataset] = C
    return accuracy, classes


def difference(a: dict[Cell, float], b: dict[Cell, float], keep: Callable[[Cell], bool]) -> Estimate:
    cells = sorted(cell for cell in a if cell in b and keep(cell))
    values = np.array([a[cell] - b[cell] for cell in cells])
    return cluster_mean(values, np.array([cell[0] for cell in cells]))


def paired_table(accuracy: dict[str, dict[Cell, float]]) -> None:
    print("\n| gauss-probe minus | " + " | ".join(f"K={k}" for k in SHOTS) + " | K≥4 |\n|" + "---|" * 7)
    for other in (*(head for head in HEADS if head != OURS), "equal_weights"):
        by_shots = [difference(accuracy[OURS], accuracy[other], lambda c, k=k: c[1] == k) for k in SHOTS]
        late = difference(accuracy[OURS], accuracy[other], lambda c: c[1] >= 4)
        print(f"| {other} | " + " | ".join(map(with_interval, [*by_shots, late])) + " |")


def kinds_table(accuracy: dict[str, dict[Cell, float]]) -> None:
    """Every head minus CLAP on real, open and all sets."""
    sets = {cell[0] for cell in accuracy[OURS]}
    kinds = {"real": sets & set(REAL), "open": sets - set(REAL), "all": sets}
    print("\n| minus CLAP | sets | " + " | ".join(f"K={k}" for k in SHOTS) + " | K≥4 |\n|" + "---|" * 8)
    for head, title in COMPARED.items():
        for kind, names in kinds.items():
            cells = [
                *((lambda c, k=k, names=names: c[1] == k and c[0] in names) for k in SHOTS),
                lambda c, names=names: c[1] >= 4 and c[0] in names,
            ]
            found = [difference(accuracy[head], accuracy["clap"], keep) for keep in cells]
            print(f"| {title} | {kind} | " + " | ".join(map(with_interval, found)) + " |")


def dataset_table(accuracy: dict[str, dict[Cell, float]], other: str, single: set[tuple[str, int]]) -> None:
    """Mean difference, and the standard error of the draws where there are several."""
    print(f"\n| minus {other} | " + " | ".join(f"K={k}" for k in SHOTS) + " |\n|" + "---|" * 6)
    for dataset in sorted({cell[0] for cell in accuracy[OURS]}):
        line = []
        for k in SHOTS:
            cells = [cell for cell in accuracy[OURS] if cell[:2] == (dataset, k) and cell in accuracy[other]]
            values = np.array([accuracy[OURS][cell] - accuracy[other][cell] for cell in cells])
            mean = f"{values.mean():+.2f}" if len(values) else "–"
            if len(values) and (dataset, k) not in single:
                mean += f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}"
            line.append(mean.replace("-", "−"))
        print(f"| {dataset} | " + " | ".join(line) + " |")


def same_shots_table(folders: Iterable[Path], single: set[tuple[str, int]]) -> None:
    """Where a pool has no more than K pictures of a class, all draws are one: standard errors over test pictures."""
    hits: dict[Cell, dict[str, np.ndarray]] = {}
    wanted = ("dataset", "tier", "shots", "seed", "method", "status", "n_test", "hits")
    for folder in folders:
        columns = load_table(folder).select(wanted).to_pydict()
        for dataset, tier, shots, seed, method, status, n, packed in zip(*columns.values(), strict=True):
            if status == "ok" and tier in TIERS and (dataset, shots) in single and method in (OURS, "clap", "lpp"):
                bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=n)
                hits.setdefault((dataset, shots, seed), {})[method] = 100.0 * bits
    print("\n| all draws have the same shots | minus clap | minus lpp | pictures |\n|---|---|---|---|")
    for dataset, shots in sorted(single):
        draws = [of for cell, of in hits.items() if cell[:2] == (dataset, shots) and len(of) == 3]
        if not draws:
            continue
        line, n = [], len(draws[0][OURS])
        for other in ("clap", "lpp"):
            values = np.mean([of_cell[OURS] - of_cell[other] for of_cell in draws], axis=0)
            error = values.std(ddof=1) / np.sqrt(n)
            line.append(f"{values.mean():+.2f} ± {error:.2f}".replace("-", "−"))
        print(f"| {dataset}, K={shots} | " + " | ".join(line) + f" | {n} |")


def real_table(accuracy: dict[str, dict[Cell, float]], datasets: Iterable[str]) -> None:
    names = ("zero_shot", "clap", "lpp", "fold_gda", "fast_probe", OURS)
    print("\n| mean over K ≥ 4 | " + " | ".join(names) + " |\n|" + "---|" * 7)
    common = set.intersection(*(set(accuracy[m]) for m in names))
    for dataset in datasets:
        cells = [c for c in common if c[0] == dataset and c[1] >= 4]
        if not cells:
            continue
        means = [np.mean([accuracy[m][c] for c in cells]) for m in names]
        print(f"| {dataset} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")


def advice(accuracy: dict[str, dict[Cell, float]], classes: dict[str, int]) -> list[dict]:
    """For each number of shots and kind of dataset: the head with the best mean, and its paired lead on the others.

    Over all sets also the lead on CLAP of what is chosen without the set it is used on (leave-one-set-out).
    """
    by_group = leave_one_out.left_out(leave_one_out.HEAD, "chosen by the mean", leave_one_out.RIVAL)
    left_out = {k: by_group[group] for group, shots in leave_one_out.GROUPS.items() for k in shots}
    judged = {cell[0] for cell in accuracy["zero_shot"]}
    zero = {d: np.mean([v for c, v in accuracy["zero_shot"].items() if c[0] == d]) for d in judged}
    kinds: dict[str, Callable[[str], bool]] = {
        "all": lambda d: True,
        "few classes": lambda d: classes[d] <= FEW_CLASSES,
        "many classes": lambda d: classes[d] > FEW_CLASSES,
        "good text": lambda d: d in judged and bool(zero[d] >= GOOD_TEXT),
        "weak text": lambda d: d in judged and bool(zero[d] < GOOD_TEXT),
    }
    found = []
    for k in SHOTS:
        for kind, belongs in kinds.items():

            def keep(cell: Cell, k: int = k, belongs: Callable[[str], bool] = belongs) -> bool:
                return cell[1] == k and belongs(cell[0])

            common = set.intersection(*(set(accuracy[m]) for m in HEADS if any(map(keep, accuracy[m]))))
            means = {
                m: float(np.mean([v for c, v in accuracy[m].items() if keep(c) and c in common]))
                for m in HEADS
                if any(map(keep, accuracy[m]))
            }
            best = max(means, key=means.__getitem__)
            leads = {m: difference(accuracy[best], accuracy[m], keep) for m in means if m != best}
            found.append(
                {
                    "shots": k,
                    "kind": kind,
                    "head": best,
                    "datasets": next(iter(leads.values())).G,
                    "accuracy": {m: round(v, 2) for m, v in means.items()},
                    "lead": {m: rounded(e) for m, e in leads.items()},
                }
            )
            if kind == "all":
                found[-1]["left_out"] = rounded(left_out[k])
    return found


def rounded(found: Estimate) -> list[float]:
    return [round(float(x or 0), 2) for x in (found.mean, found.low, found.high)]


def advice_table(found: list[dict]) -> None:
    print("\n| shots | kind | sets | best mean | over gauss-probe | over CLAP |\n|---|---|---|---|---|---|")
    for row in found:
        leads = (row["lead"].get(m) for m in (OURS, "clap"))
        words = ["–" if x is None else f"{x[0]:+.2f} [{x[1]:+.2f}, {x[2]:+.2f}]".replace("-", "−") for x in leads]
        print(f"| {row['shots']} | {row['kind']} | {row['datasets']} | {row['head']} | {words[0]} | {words[1]} |")


def print_tables(folders: list[Path]) -> list[dict]:
    """All tables of the page; return the advice."""
    accuracy, classes = read(folders)
    single = set.union(*map(single_draws, folders))
    paired_table(accuracy)
    kinds_table(accuracy)
    for other in ("clap", "lpp"):
        dataset_table(accuracy, other, single)
    real_table(accuracy, REAL)
    found = advice(accuracy, classes)
    advice_table(found)
    same_shots_table(folders, single)
    return found


if __name__ == "__main__":
    found = print_tables([Path(name) for name in sys.argv[1:]] or FOLDERS)
    WRITTEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
