"""What each part of gauss-probe is worth on the pools: the ablation tables of docs/gauss-probe.md.

`python -m tools.ablate_gauss` reads features/ (`make clip-features`) and the bundled sets. Shots are drawn from the
pools by seeds that no study and no choice has used (from 320 on) and judged on the pool pictures outside the shots; no
test picture is looked at. Every cell's numbers are kept in records/ablation and not computed again. `--draws N` takes N
seeds, `--dataset NAME` one set (repeatable), `--print` computes nothing.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tools.calibration import answers, calibration_error, cross_entropy, drawn_task

from kshot.bench.study import Cell, load_study
from kshot.data.store import Store
from kshot.files import write_text
from kshot.methods.evidence import Task
from kshot.methods.fast_probe import learn_probe
from kshot.methods.fold_gda import shots_correction
from kshot.methods.gauss_probe import SINGLE_SHOT_PULL, GaussProbe, LeftOutShots
from kshot.methods.selectors import fit_on
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import PRIORS, Side, WeightPriors, side_weights, spread, stack, text_scale

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "records" / "ablation"
FIRST_SEED = 320
# At most so much of a class's pictures are shots: the others judge.
LARGEST_SHARE = 0.75
HEAD = "gauss-probe"
PULLS = {"1": 1.0, "¼": 0.25, "4": 4.0, "16": 16.0}
SIDES = {"the sum": HEAD, "the probe": "the probe alone", "fold-GDA": "fold-GDA alone"}


class Outcome(NamedTuple):
    """Accuracy, cross-entropy and calibration error of every variant, and where the two sides err."""

    numbers: dict[str, tuple[float, float, float]]
    errors: dict[str, float | None]


def numbers(logits: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, cross-entropy (in hundredths) and calibration error."""
    hits = 100 * float(np.mean(logits.argmax(axis=1) == y))
    return hits, 100 * cross_entropy(logits, y), calibration_error(answers(logits, y))


class Parts:
    """The sides of one cell, fitted once, and their sums on the pictures that judge."""

    def __init__(self, task: Task, head: GaussProbe, X: np.ndarray):
        self.X, self.correction = X, shots_correction(task.counts)
        head.selected_ = {}
        left_out = LeftOutShots.of(task)
        rows = left_out.rows
        self.y, scaled_text = task.y[rows], task.logit_scale * task.text
        scores = left_out.X @ scaled_text.T
        self.text_scores = scores[rows]
        told = text_scale(scores, task.y).information / np.log(task.n_classes)
        pulls = PULLS | {"told": 1 + SINGLE_SHOT_PULL * told**2}
        self.probes = {
            name: head.probe_side(task, left_out, head.half_probes(task, left_out, head.iterations, pull))
            for name, pull in pulls.items()
        }
        self.gaussian = head.gaussian_side(task, left_out)
        self.chosen = head.probe_side(task, left_out, head.choose_pull(task, left_out, self.gaussian))
        no_bias = np.zeros(task.n_classes, scaled_text.dtype)
        self.text = Side.of(scaled_text, no_bias, scores, self.text_scores, spread(self.text_scores), 1.0)
        self.pair = [self.chosen, self.gaussian]

    def sum(self, *sides: Side, priors: WeightPriors = PRIORS) -> np.ndarray:
        return self.total(sides, side_weights(sides, self.y, self.text_scores, self.correction, priors).weights)

    def total(self, sides: tuple[Side, ...], weights: np.ndarray) -> np.ndarray:
        return np.sum([w * (self.X @ s.coef.T + s.intercept) for w, s in zip(weights, sides, strict=True)], axis=0)

    def with_priors(self, **changed: float) -> np.ndarray:
        return self.sum(*self.pair, priors=PRIORS._replace(**changed))

    def by_halves(self) -> np.ndarray:
        """The penalty whose sum with fold-GDA tells most about the judges."""
        pairs = [(self.probes[name], self.gaussian) for name in PULLS]
        told = [stack(np.stack([s.held_out for s in pair]), self.y, PRIORS.ratio_spread).information for pair in pairs]
        return self.sum(*pairs[int(np.argmax(told))])


VARIANTS: dict[str, Callable[[Parts], np.ndarray]] = {
    HEAD: lambda p: p.sum(*p.pair),
    "the probe alone": lambda p: p.sum(p.chosen),
    "fold-GDA alone": lambda p: p.sum(p.gaussian),
    "equal weights": lambda p: p.total(tuple(p.pair), np.ones(2)),
    "prior on the ratio half as wide": lambda p: p.with_priors(ratio_spread=0.25),
    "prior on the ratio twice as wide": lambda p: p.with_priors(ratio_spread=1.0),
    "prior on the scale without its rise": lambda p: p.with_priors(scale_rise=0.0),
    "no prior on the scale": lambda p: p.with_priors(scale_spread=50.0),
    "no growth": lambda p: p.with_priors(growth=0.0),
    "penalties × 1": lambda p: p.sum(p.probes["1"], p.gaussian),
    "penalties × ¼": lambda p: p.sum(p.probes["¼"], p.gaussian),
    "penalties × 4": lambda p: p.sum(p.probes["4"], p.gaussian),
    "penalties × 16": lambda p: p.sum(p.probes["16"], p.gaussian),
    "penalties as at one shot": lambda p: p.sum(p.probes["told"], p.gaussian),
    "the best of these four by the halves": Parts.by_halves,
    "probes of all four penalties, and fold-GDA": lambda p: p.sum(*(p.probes[name] for name in PULLS), p.gaussian),
    "text as a third side": lambda p: p.sum(*p.pair, p.text),
}


def many_shots(task: Task, head: GaussProbe, X: np.ndarray, y: np.ndarray) -> Outcome:
    parts = Parts(task, head, X)
    logits = {name: variant(parts) for name, variant in VARIANTS.items()}
    told = {"text": parts.total((parts.text,), np.ones(1))} | {name: logits[of] for name, of in SIDES.items()}
    hits = {name: z.argmax(axis=1) == y for name, z in told.items()}
    return Outcome({name: numbers(z, y) for name, z in logits.items()}, errors(hits))


def errors(hits: dict[str, np.ndarray]) -> dict[str, float | None]:
    """Where the two sides differ, in per cent of the pictures named."""
    text, pair, probe, gaussian = (hits[name] for name in ("text", *SIDES))
    found = {"exactly one of probe and fold-GDA is right": (probe ^ gaussian, np.ones_like(pair))}
    found["the sum is right where only the probe is"] = pair, probe & ~gaussian
    found["the sum is right where only fold-GDA is"] = pair, gaussian & ~probe
    for where, here in (("right", text), ("wrong", ~text)):
        found |= {f"{name}, where text is {where}": (hits[name], here) for name in SIDES}
    return {name: 100 * float(right[here].mean()) if here.any() else None for name, (right, here) in found.items()}


def single_shots(task: Task, head: GaussProbe, X: np.ndarray, y: np.ndarray) -> Outcome:
    """The head, and the probe at fixed penalties and the encoder's temperature."""
    found = {HEAD: numbers(fit_on(head, task).scores(X), y)}
    for name, pull in PULLS.items():
        weights, _ = learn_probe(task, head.iterations, pull=pull)
        found[f"penalties × {name}"] = numbers(X @ (task.logit_scale * unit_prototypes(weights)).T, y)
    return Outcome(found, {})


def cells(draws: int, datasets: list[str] | None) -> list[Cell]:
    """Those of the study `gauss`, with other seeds."""
    study = [cell for cell in load_study("gauss").cells() if cell.seed < draws]
    chosen = [cell for cell in study if datasets is None or cell.dataset in datasets]
    return sorted(chosen, key=lambda cell: cell.seed)


def kept_file(cell: Cell) -> Path:
    return KEPT / f"{cell.dataset}-{cell.shots}-{FIRST_SEED + cell.seed}.json"


def computed(cell: Cell, store: Store) -> Outcome:
    task, seen = drawn_task(replace(cell, seed=FIRST_SEED + cell.seed), store, LARGEST_SHARE)
    return (single_shots if task.counts.max() == 1 else many_shots)(task, GaussProbe(), *seen.pool)


def kept(chosen: list[Cell]) -> Iterator[tuple[Cell, Outcome]]:
    for cell in chosen:
        if kept_file(cell).exists():
            yield cell, Outcome(**json.loads(kept_file(cell).read_text(encoding="utf-8")))


def print_table(title: str, found: list[tuple[Cell, Outcome]]) -> None:
    """Mean over sets of the paired difference to the head, and on how many sets it is beyond two standard errors."""
    kinds = by_kind(found)
    heading = [f"{what}, {kind}" for what in ("accuracy", "cross-entropy", "ECE") for kind in kinds]
    print(f"\n{title}: {len(found)} cells\n")
    print("| minus gauss-probe | " + " | ".join(heading) + " | sets above / below in accuracy |")
    print("|" + "---|" * (len(heading) + 2))
    for name in found[0][1].numbers:
        sign, zero = ("", 0) if name == HEAD else ("+", 1)
        values = {
            dataset: np.array([np.subtract(o.numbers[name], zero * np.array(o.numbers[HEAD])) for o in outcomes])
            for sets in kinds.values()
            for dataset, outcomes in sets.items()
        }
        means = [
            f"{np.mean([values[d][:, column].mean() for d in sets]):{sign}.2f}".replace("-", "−")
            for column in range(3)
            for sets in kinds.values()
        ]
        clear = [_clear(v[:, 0]) for v in values.values()]
        counts = "" if name == HEAD else f"{clear.count(1)} / {clear.count(-1)}"
        print(f"| {name} | " + " | ".join(means) + f" | {counts} |")


def print_errors(found: list[tuple[Cell, Outcome]]) -> None:
    """Means over sets of the means over their cells."""
    kinds = by_kind(found)
    print("\n| per cent | " + " | ".join(kinds) + " |\n|" + "---|" * (len(kinds) + 1))
    for name in found[0][1].errors:
        means = []
        for sets in kinds.values():
            of_sets = [[o.errors[name] for o in outcomes] for outcomes in sets.values()]
            means.append(np.mean([np.mean([x for x in of_set if x is not None]) for of_set in of_sets]))
        print(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")


def by_kind(found: list[tuple[Cell, Outcome]]) -> dict[str, dict[str, list[Outcome]]]:
    """Open and CLIP sets, each with the outcomes of its cells."""
    kinds: dict[str, dict[str, list[Outcome]]] = {}
    for cell, outcome in found:
        kind = kinds.setdefault("open" if cell.backbone == "lite0" else "CLIP", {})
        kind.setdefault(cell.dataset, []).append(outcome)
    return kinds


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
            write_text(kept_file(cell), json.dumps(computed(cell, store)._asdict()) + "\n")
    found = list(kept(chosen))
    print_table("One shot", [one for one in found if one[0].shots == 1])
    several = [one for one in found if one[0].shots > 1]
    print_table("Two shots and more", several)
    print_errors(several)


if __name__ == "__main__":
    main()
