"""How often is a fault-free run called different, and what is seen of planted faults? `python -m benchmarks.verdict`.

Worlds of the paper's sizes (verdict_world.py): printed numbers are another run of the world on other draws, on another
68/32 split of ImageNet and SUN397, rounded as the paper rounds. `alarms 100` counts fault-free runs that are called
different, by mode, in worlds that chose nothing, `tuned 100` in those that chose the rule for few draws; `faults 20`
plants faults; `kept` prints kshot/paper/kept_noise.toml from docs/clip/records.
"""

import copy
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.verdict_world import (
    BACKBONES,
    CLAIMS,
    DATASETS,
    METHODS,
    RATIOS,
    SD,
    SHAPE,
    B,
    D,
    col,
    observed,
    run,
    world,
)  # fmt: skip
from kshot import load_records
from kshot.paper.claims import paper_rules
from kshot.paper.evaluate import Evaluator
from kshot.paper.judge import judge

# The worlds below UNSEEN chose the rule for few draws; false alarms are counted on others.
RULES, FIRST, UNSEEN = paper_rules(), 50_000, 1_000
SMALL = ("DTD", "EuroSAT", "Pets")
TESTED = [claim for claim in CLAIMS if not (RULES.rule(claim).over or RULES.rule(claim).association)]
# Draws, datasets and encoder that a run beside printed numbers has.
PARTS = {
    "full": (5, DATASETS, BACKBONES), "three draws": (3, DATASETS, BACKBONES), "two draws": (2, DATASETS, BACKBONES),
    "one draw": (1, DATASETS, BACKBONES), "--small": (5, SMALL, ("ViT-B-16",)),
    "--small, two draws": (2, SMALL, ("ViT-B-16",)), "one encoder": (5, DATASETS, ("ViT-B-16",)),
}  # fmt: skip
RUNS = {"two runs": 5, "two runs, two draws": 2}
SAME = "same draws"


def other_split(one, truth, rng):
    """Accuracies of ImageNet and SUN397 on other test pictures: shifts that all share, an encoder's and a method's."""
    for d in (DATASETS.index("ImageNet"), DATASETS.index("SUN397")):
        p = np.clip(np.nanmean(truth.accuracy[d]) / 100, 0.05, 0.95)
        sd = 100 * np.sqrt(0.68 * p * (1 - p) / truth.n_test[d])
        own = np.sqrt(0.2) * rng.normal(size=(B, 1, 1, 1, 1)) + np.sqrt(0.2) * rng.normal(
            size=(B, 1, 1, 1, len(METHODS))
        )
        one.accuracy[d] += sd * (np.sqrt(0.6) * rng.normal() + own)
    return one


@lru_cache(maxsize=128)
def printed(seed):
    """The claims with the numbers of another run, rounded as the paper does."""
    truth = world(FIRST + seed)
    one = other_split(run(truth, (FIRST, seed, 2)), truth, np.random.default_rng([13, seed]))
    numbers = Evaluator(TESTED, RULES, observed(truth, one))
    return [
        replace(c, printed=_rounded(c, numbers.answer(c).value)) if numbers.answer(c).computed else c for c in TESTED
    ]


def _rounded(claim, value):
    mantissa, _, exponent = claim.printed.lower().partition("e")
    return f"{value:.{len(mantissa.partition('.')[2])}{'e' if exponent else 'f'}}"


def cut(one, part):
    """A run without what this part of the paper leaves out."""
    draws, datasets, backbones = part
    gone = np.ones(SHAPE[:2], bool)
    gone[np.ix_([DATASETS.index(d) for d in datasets], [BACKBONES.index(b) for b in backbones])] = False
    for values in (one.accuracy, one.ratio):
        values[gone] = np.nan
        values[:, :, :, :, draws:] = np.nan
    return one


def flips(one, truth, rng):
    """A picture in one of fifty cells, as another machine's arithmetic gives it."""
    pictures = (rng.random(SHAPE) < 0.02) * rng.choice([-1, 1], SHAPE)
    one.accuracy += 100 * pictures / truth.n_test[:, None, None, None, None, None]
    return one


def judged(mode, seed, fault=None):
    """One comparison; a fault is planted in our run."""
    truth, rng = world(FIRST + seed), np.random.default_rng([5, seed])
    ours, there = run(truth, (FIRST, seed, 1)), copy.deepcopy(truth)
    theirs = flips(copy.deepcopy(ours), truth, rng) if mode == SAME else run(truth, (FIRST, seed, 3))
    if fault:
        fault(ours, rng, there)
    if mode in PARTS:
        return judge(printed(seed), RULES, observed(there, cut(ours, PARTS[mode])))
    part = (RUNS.get(mode, 5), DATASETS, BACKBONES)
    some = TESTED[:60]
    return judge(some, RULES, observed(there, cut(ours, part)), observed(truth, cut(theirs, part)), "the other run")


def test_sets_of_90(one, rng, truth):
    shift = 0.6 * rng.normal(size=(D, B, 1, 1, 1, 1)) + 0.8 * rng.normal(size=(D, 1, 1, 1, 1, 1))
    one.accuracy += shift * (15 / np.sqrt(truth.n_test))[:, None, None, None, None, None]
    truth.n_test = (0.9 * truth.n_test).astype(int)


def centred(one, rng, truth):
    """ViT-B/32 with centred features, as real CLIP features move."""
    b = BACKBONES.index("ViT-B-32")
    moves = {"zero_shot": -0.8, "clap": -2.3, "ncm": 0.3, "js_blend": 0.4, "mse_oracle": 1.3, "lpp": -0.5}
    for method, points in moves.items():
        one.accuracy[:, b, ..., col(method)] += points
    for method in RATIOS:
        one.ratio[:, b, ..., col(method)] = np.clip(one.ratio[:, b, ..., col(method)] - 0.08, 0, 1)
    one.share[:, b] -= 0.1


def half_the_epochs(one, rng, truth):
    one.accuracy[..., col("clap")] -= np.array([0.1, 0.2, 0.3, 0.5, 0.7])[:, None]


def two_labels_swapped(one, rng, truth):
    """What no draw changes stays: zero-shot, and GDA at one shot."""
    moved = np.array([0.7, 1.5, 2.5, 3, 3.3])[:, None] * (np.array([SD[m] for m in METHODS]).T > 0)
    one.accuracy[DATASETS.index("DTD")] -= moved[:, None]


def copied_shots(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[DATASETS.index("Cars"), :, :, 3] = values[DATASETS.index("Cars"), :, :, 2]


def shared_supports(one, rng, truth):
    for name in ("Aircraft", "Flowers102"):
        for values in (one.accuracy, one.ratio):
            values[DATASETS.index(name), :, :, :, 1:] = values[DATASETS.index(name), :, :, :, :1]


def another_tiers_text(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:, 0, 1] = values[:, 0, 0]


# The fault, the modes in which it is planted, and the word that the first row of the table should hold.
FAULTS = {
    "half the epochs of CLAP": (half_the_epochs, (SAME, "full", "two runs"), "clap"),
    "two labels swapped in DTD": (two_labels_swapped, ("full", "--small", "two runs"), "DTD"),
    "test sets of 90 %": (test_sets_of_90, ("full", "two runs"), ""),
    "ViT-B/32 centred": (centred, ("full", "two runs"), "ViT-B-32"),
    "K = 8 copied from K = 4 in Cars": (copied_shots, ("full", "two runs"), "K = 8"),
    "shared supports in two sets": (shared_supports, ("full", "two runs"), ""),
    "another tier's text with RN50": (another_tiers_text, ("full", "two runs"), "RN50"),
}


def alarms(count, modes, first):
    print("| mode | runs | called different | p < 0.05 |\n|---|---:|---:|---:|")
    for mode in modes or [*PARTS, *RUNS, SAME]:
        found = [judged(mode, first + seed) for seed in range(count)]
        low = sum(one.p < 0.05 for one in found)
        print(f"| {mode} | {count} | {sum(not one.same for one in found)} | {low} |", flush=True)
        why = Counter(s for one in found for s in (*one.signs, *(x.claim.id for x in one.fixed_apart)))
        if why:
            print("   ", why.most_common(4), file=sys.stderr, flush=True)


def faults(count, chosen):
    print("| fault | mode | seen | plain | by the test | first row right | first |\n|---|---|---:|---:|---:|---:|---|")
    for name, (fault, modes, word) in FAULTS.items():
        for mode in [one for one in modes if not chosen or one in chosen]:
            found = [judged(mode, seed, fault) for seed in range(count)]
            seen, plain = sum(not one.same for one in found), sum(bool(one.signs or one.fixed_apart) for one in found)
            first = Counter(str(one.places[0].place) if one.places else (*one.signs, "–")[0] for one in found)
            right = sum(times for place, times in first.items() if word and word in place)
            print(
                f"| {name} | {mode} | {seen} | {plain} | {sum(one.p < 0.03 for one in found)} | "
                f"{right if word else '–'} | {first.most_common(1)[0][0]} |",
                flush=True,
            )


def kept():
    real = load_records(Path(__file__).parents[1] / "docs/clip/records").panel
    keys = np.array(real.cell_keys(("dataset", "backbone", "tier", "shots"))).astype(str)
    strata = np.unique(keys[:, :3], axis=0)

    def deviations(values):
        row = []
        for k in (1, 2, 4):
            here = [values[(keys == [*stratum, str(k)]).all(axis=1)] for stratum in strata]
            found = [v[np.isfinite(v)].var(ddof=1) for v in here if np.isfinite(v).sum() > 2]
            row.append(np.sqrt(np.median(found) / (1 - k / 16)) if found else np.nan)
        return [float(f"{v:.2g}") for v in (row if np.isfinite(row[0]) else [row[1], *row[1:]])]

    methods = [*METHODS, "logistic_probe", "logistic_probe_test"]
    columns = {name: real.column(name) for name in methods}
    columns |= {
        f"ratio of {name}": real.column(name, "ratio") for name in ("js_blend", "centred_js_blend", *RATIOS[1:])
    }
    columns |= {f"quantity {fact}": real.cells[fact] for fact in ("share", "d2")}
    for name, values in columns.items():
        print(f'"{name}" = {deviations(values)}')


def main(what="alarms", count="100", *chosen):
    started = time.process_time()
    if what == "kept":
        kept()
    else:
        if what == "faults":
            faults(int(count), chosen)
        else:
            alarms(int(count), chosen, 0 if what == "tuned" else UNSEEN)
        print(f"{time.process_time() - started:.0f} s of processor time", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
