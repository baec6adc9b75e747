"""What each part of gauss-probe is worth on the pools: the ablation tables of docs/gauss-probe.md.

`python -m tools.ablate_gauss` reads features/ (`make clip-features`) and the bundled sets. Shots are drawn from the
pools by seeds that no study uses (from 200 on) and judged on the pool pictures outside the shots; no test picture is
looked at. Every cell's numbers are kept in records/ablation and not computed again. `--draws N` takes N seeds,
`--dataset NAME` one set (repeatable), `--print` computes nothing.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tools.calibration import answers, calibration_error, cross_entropy

from kshot.bench.execution.cell import known_constants
from kshot.bench.study import Cell, load_study
from kshot.episodes.guard import Episode
from kshot.episodes.stratum import load_prior, load_stratum
from kshot.features.store import Store
from kshot.files import write_text
from kshot.methods.evidence import Task, prepare
from kshot.methods.fast_probe import learn_probe
from kshot.methods.fold_gda import shots_correction
from kshot.methods.gauss_probe import INFO, GaussProbe, Judges
from kshot.methods.weighing import BELIEFS, Beliefs, Side, spread, weigh
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import stack

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "records" / "ablation"
FIRST_SEED = 200
# At most so much of a class's pictures are shots: the others judge.
LARGEST_SHARE = 0.75
HEAD = "gauss-probe"
PULLS = {"1": 1.0, "¼": 0.25, "4": 4.0, "16": 16.0}
Numbers = dict[str, tuple[float, float, float]]


def numbers(logits: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, cross-entropy (in hundredths) and calibration error."""
    hits = 100 * float(np.mean(logits.argmax(axis=1) == y))
    return hits, 100 * cross_entropy(logits, y), calibration_error(answers(logits, y))


class Parts:
    """The sides of one cell, fitted once, and their sums on the pictures that judge."""

    def __init__(self, task: Task, head: GaussProbe, X: np.ndarray):
        self.X, self.correction = X, shots_correction(task.counts)
        head.selected_ = {}
        judges = Judges.of(task)
        rows = judges.rows
        self.y, scaled_text = task.y[rows], head.logit_scale * task.text
        scores = judges.X @ scaled_text.T
        self.text_scores = scores[rows]
        self.probes = {name: head.probe_side(task, judges, pull) for name, pull in PULLS.items()}
        self.gaussian = head.gaussian_side(task, judges)
        no_bias = np.zeros(task.n_classes, scaled_text.dtype)
        self.text = Side.of(scaled_text, no_bias, scores, self.text_scores, spread(self.text_scores), 1.0)
        self.pair = [self.probes["1"], self.gaussian]

    def sum(self, *sides: Side, beliefs: Beliefs = BELIEFS) -> np.ndarray:
        return self.total(sides, weigh(sides, self.y, self.text_scores, self.correction, beliefs).weights)

    def total(self, sides: tuple[Side, ...], weights: np.ndarray) -> np.ndarray:
        return np.sum(
            [w * (self.X @ s.coef.T + s.intercept) for w, s in zip(weights, sides, strict=True)], axis=0
        )

    def believing(self, **changed: float) -> np.ndarray:
        return self.sum(*self.pair, beliefs=BELIEFS._replace(**changed))

    def by_halves(self) -> np.ndarray:
        """The penalty whose sum with fold-GDA tells most about the judges."""
        pairs = [(probe, self.gaussian) for probe in self.probes.values()]
        told = [
            stack(np.stack([s.held_out for s in pair]), self.y, BELIEFS.ratio_spread).information
            for pair in pairs
        ]
        return self.sum(*pairs[int(np.argmax(told))])


VARIANTS: dict[str, Callable[[Parts], np.ndarray]] = {
    HEAD: lambda p: p.sum(*p.pair),
    "the probe alone": lambda p: p.sum(p.probes["1"]),
    "fold-GDA alone": lambda p: p.sum(p.gaussian),
    "equal weights": lambda p: p.total(tuple(p.pair), np.ones(2)),
    "prior on the ratio half as wide": lambda p: p.believing(ratio_spread=0.25),
    "prior on the ratio twice as wide": lambda p: p.believing(ratio_spread=1.0),
    "prior on the scale without its rise": lambda p: p.believing(scale_rise=0.0),
    "no prior on the scale": lambda p: p.believing(scale_spread=50.0),
    "no growth": lambda p: p.believing(growth=0.0),
    "penalties × ¼": lambda p: p.sum(p.probes["¼"], p.gaussian),
    "penalties × 4": lambda p: p.sum(p.probes["4"], p.gaussian),
    "penalties × 16": lambda p: p.sum(p.probes["16"], p.gaussian),
    "penalties by the halves": Parts.by_halves,
    "probes of all four penalties, and fold-GDA": lambda p: p.sum(*p.probes.values(), p.gaussian),
    "text as a third side": lambda p: p.sum(*p.pair, p.text),
}


def many_shots(task: Task, head: GaussProbe, X: np.ndarray, y: np.ndarray) -> Numbers:
    parts = Parts(task, head, X)
    return {name: numbers(variant(parts), y) for name, variant in VARIANTS.items()}


def single_shots(task: Task, head: GaussProbe, X: np.ndarray, y: np.ndarray) -> Numbers:
    """The head, and the probe at fixed penalties and the encoder's temperature."""
    found = {HEAD: numbers(head.fit(task.X, task.y, text=task.text).decision_function(X), y)}
    for name, pull in PULLS.items():
        learnt = learn_probe(task, head.iterations, head.anchor_scale, head.logit_scale, pull=pull)
        found[f"penalties × {name}"] = numbers(X @ (head.logit_scale * unit_prototypes(learnt.weights)).T, y)
    return found


def cells(draws: int, datasets: list[str] | None) -> list[Cell]:
    """Those of the study `gauss`, with other seeds."""
    study = [cell for cell in load_study("gauss").cells() if cell.seed < draws]
    chosen = [cell for cell in study if datasets is None or cell.dataset in datasets]
    return sorted(chosen, key=lambda cell: cell.seed)


def kept_file(cell: Cell) -> Path:
    return KEPT / f"{cell.dataset}-{cell.shots}-{FIRST_SEED + cell.seed}.json"


def computed(cell: Cell, store: Store) -> Numbers:
    where = cell.dataset, cell.backbone
    stratum, prior = load_stratum(store, *where), load_prior(store, *where, cell.tier)
    largest = int(LARGEST_SHARE * np.median(np.bincount(stratum.pool.y)))
    episode: Episode = stratum.episode(min(cell.shots, largest), FIRST_SEED + cell.seed, prior.text)
    seen = episode.reveal(frozenset({"support", "pool"}))
    task = prepare(INFO, 1, *seen.support, text=prior.text)
    head = GaussProbe(**known_constants(INFO.sees, stratum, prior))
    return (single_shots if task.counts.max() == 1 else many_shots)(task, head, *seen.pool)


def kept(chosen: list[Cell]) -> Iterator[tuple[Cell, Numbers]]:
    for cell in chosen:
        if kept_file(cell).exists():
            yield cell, json.loads(kept_file(cell).read_text(encoding="utf-8"))


def print_table(title: str, found: list[tuple[Cell, Numbers]]) -> None:
    """Mean over sets of the paired difference to the head, and on how many sets it is beyond two standard errors."""
    sets = sorted({cell.dataset for cell, _ in found})
    kinds = {"open": [d for d in sets if _backbone(found, d) == "lite0"]}
    kinds["CLIP"] = [d for d in sets if d not in kinds["open"]]
    heading = [f"{what}, {kind}" for what in ("accuracy", "cross-entropy", "ECE") for kind in kinds]
    print(f"\n{title}: {len(found)} cells of {len(sets)} sets\n")
    print("| minus gauss-probe | " + " | ".join(heading) + " | sets above / below in accuracy |")
    print("|" + "---|" * (len(heading) + 2))
    for name in found[0][1]:
        values = {
            d: np.array([np.subtract(n[name], n[HEAD]) for c, n in found if c.dataset == d]) for d in sets
        }
        if name == HEAD:
            values = {d: np.array([n[HEAD] for c, n in found if c.dataset == d]) for d in sets}
        form = "{:.2f}" if name == HEAD else "{:+.2f}"
        means = [
            form.format(np.mean([values[d][:, column].mean() for d in kinds[kind]])).replace("-", "−")
            for column in range(3)
            for kind in kinds
            if kinds[kind]
        ]
        clear = [_clear(values[d][:, 0]) for d in sets]
        counts = "" if name == HEAD else f"{clear.count(1)} / {clear.count(-1)}"
        print(f"| {name} | " + " | ".join(means) + f" | {counts} |")


def _backbone(found: list[tuple[Cell, Numbers]], dataset: str) -> str:
    return next(cell.backbone for cell, _ in found if cell.dataset == dataset)


def _clear(values: np.ndarray) -> int:
    """The sign of a mean that is beyond two standard errors, else 0."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return int(np.sign(values.mean())) if abs(values.mean()) > 2 * error else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--print", action="store_true", dest="only_print")
    given = parser.parse_args()
    chosen = cells(given.draws, given.dataset)
    store = Store(ROOT / "features")
    KEPT.mkdir(parents=True, exist_ok=True)
    for cell in chosen:
        if not given.only_print and not kept_file(cell).exists():
            write_text(kept_file(cell), json.dumps(computed(cell, store)) + "\n")
    found = list(kept(chosen))
    print_table("One shot", [one for one in found if one[0].shots == 1])
    print_table("Two shots and more", [one for one in found if one[0].shots > 1])


if __name__ == "__main__":
    main()
