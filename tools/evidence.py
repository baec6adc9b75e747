"""What committed records say of the heads: tables for docs/gauss-probe.md, and the advice of `kshot fit`.

`python -m tools.evidence` prints the tables and writes src/kshot/pictures/evidence.json. Cells of several studies are
the same where dataset, backbone, tier, shots and seed are. Intervals are over datasets; encoders of one dataset are one
cluster.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from tools import leave_one_out
from tools.calibration import with_interval

from kshot.results import load_records
from kshot.stats.bootstrap import Estimate, cluster_mean

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "docs" / name / "records" for name in ("open", "clip", "gauss")]
WRITTEN = ROOT / "src" / "kshot" / "pictures" / "evidence.json"
TIERS = ("dataset", "text")
HEADS = ("zero_shot", "loo_blend", "clap", "lpp", "fold_gda", "fast_probe", "gauss_probe")
OURS = "gauss_probe"
SHOTS = (1, 2, 4, 8, 16)
REAL = ("stanford-cars", "fgvc-aircraft", "caltech101", "food101", "ucf101", "dtd", "imagenet", "whu-rs19")
# Heads compared with CLAP, on all sets and on each kind.
COMPARED = {"gauss_probe": "Gauss-probe", "fold_gda": "Fold-GDA", "lpp": "LP++", "fast_probe": "fast probe"}
GOOD_TEXT = 50.0
FEW_CLASSES = 10

# Dataset, shots, seed, backbone.
Cell = tuple[str, int, int, str]


def read(folders: Iterable[Path]) -> tuple[dict[str, dict[Cell, float]], dict[str, int]]:
    """Accuracy in per cent by method and cell, and the number of classes by dataset."""
    accuracy: dict[str, dict[Cell, float]] = {}
    classes: dict[str, int] = {}
    names = ("dataset", "tier", "shots", "seed", "backbone", "method", "status", "accuracy", "n_classes")
    for folder in folders:
        columns = load_records(folder).panel.records.select(names).to_pydict()
        for dataset, tier, shots, seed, backbone, method, status, value, C in zip(*columns.values(), strict=True):
            if status == "ok" and tier in TIERS:
                accuracy.setdefault(method, {})[dataset, shots, seed, backbone] = 100 * value
                classes[dataset] = C
    return accuracy, classes


def difference(a: dict[Cell, float], b: dict[Cell, float], keep: Callable[[Cell], bool]) -> Estimate:
    """Over datasets; the encoders of one draw are averaged first, so that they do not count as sets."""
    draws: dict[tuple[str, int, int], list[float]] = {}
    for cell in sorted(cell for cell in a if cell in b and keep(cell)):
        draws.setdefault(cell[:3], []).append(a[cell] - b[cell])
    return cluster_mean(np.array([np.mean(own) for own in draws.values()]), np.array([draw[0] for draw in draws]))


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


def advice(accuracy: dict[str, dict[Cell, float]], classes: dict[str, int]) -> list[dict]:
    """For each number of shots and kind of dataset: the head with the best mean, and its paired lead on the others.

    Over all sets also the lead on CLAP of what is chosen without the set it is used on (leave-one-set-out).
    """
    by_group = leave_one_out.left_out()
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
    paired_table(accuracy)
    kinds_table(accuracy)
    found = advice(accuracy, classes)
    advice_table(found)
    return found


if __name__ == "__main__":
    found = print_tables([Path(name) for name in sys.argv[1:]] or FOLDERS)
    WRITTEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
