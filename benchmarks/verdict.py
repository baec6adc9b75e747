"""Does the verdict mean what it says? Simulated re-runs of the paper's matrix, without fault and with planted ones.

`python -m benchmarks.verdict pairs 200` compares pairs of runs without fault, `faults 50` plants each fault.
"""

import json
import sys
import time
from collections import Counter

import numpy as np

from benchmarks.verdict_faults import HARMLESS, HOSTILE, LISTED, OTHERS
from benchmarks.verdict_world import CLAIMS, observed, run, world
from kshot.paper.arms import MATRIX
from kshot.paper.causes.cells import cell_pair
from kshot.paper.causes.find import find_causes
from kshot.paper.causes.shifts import WITH_SHOTS
from kshot.paper.claims import paper_rules
from kshot.paper.judge import judge

KINDS = {"count": "counts", "correlation": "correlations"}


def kind_of(claim):
    rule = paper_rules().rule(claim)
    if claim.unit in KINDS:
        return KINDS[claim.unit]
    if (
        rule.reduce in ("min", "max", "range")
        or "largest" in rule.reduce + rule.figure
        or "aggregate=m" in claim.restrict
    ):
        return "extremes"
    return "ratios" if rule.paired_with or claim.unit == "ratio" or rule.measure[0] == "ratio" else "means"


def compared(seed, fault=None):
    truth = world(seed)
    first, second = run(truth, (seed, 1)), run(truth, (seed, 2))
    where = fault(first, np.random.default_rng([5, seed]), truth) if fault else None
    return judge(CLAIMS, paper_rules(), observed(truth, first), observed(truth, second), "the other run"), where


def named(causes, where):
    """Whether the first cause is the planted one, or one of them where several are right."""
    if isinstance(where, list):
        return any(named(causes, one) for one in where)
    if not causes:
        return not where
    found = causes[0].where
    if where.get("method", "").startswith("the methods that choose"):
        method = found.get("method", "")
        return found.keys() <= {"method", "shots"} and ("loo" in method or method == where["method"])
    if where.get("method", "").startswith("oracle_lambda, "):
        return causes[0].kind == "grid"
    # Zero-shot uses no shots, and where it is left alone both names are right.
    found, where = ({a: n for a, n in names.items() if n != WITH_SHOTS} for names in (found, where))
    bare = {axis: str(name).removesuffix("'s ratio") for axis, name in found.items()}
    return bare == {axis: str(name).removesuffix("'s ratio") for axis, name in where.items()}


def pairs(count):
    from scipy.special import ndtri

    differs = same = 0
    beyond, sizes = Counter(), Counter()
    for seed in range(count):
        judged, _ = compared(seed)
        differs += bool(judged.differing)
        same += judged.same
        for line in judged.lines:
            if line.score == line.score:
                kind = kind_of(line.claim)
                sizes[kind] += 1
                beyond[kind] += abs(line.score) > -ndtri(0.025)
        if (seed + 1) % 10 == 0 or seed < 3:
            rates = {kind: f"{100 * beyond[kind] / sizes[kind]:.1f} %" for kind in sizes}
            print(
                seed + 1,
                f"differs {differs}, same {same}, level {judged.level:.2f}, drawn {judged.drawn}; beyond 1.96:",
                rates,
                [str(c) for c in judged.causes],
                [(x.claim.id, round(x.score, 1)) for x in judged.differing],
                flush=True,
            )
    return 0


def faults(count, chosen):
    for name, fault in chosen.items():
        noticed = right = 0
        wrong = Counter()
        for seed in range(count):
            truth = world(1_000 + seed)
            first, second = run(truth, (seed, 3)), run(truth, (seed, 4))
            where = fault(first, np.random.default_rng([5, seed]), truth)
            runs = [observed(truth, one) for one in (first, second)]
            cells = cell_pair(runs[0][MATRIX], runs[1][MATRIX])
            assert cells is not None
            causes = find_causes(cells)
            # Where cells name a cause, the claims need not be asked whether the results are the same.
            noticed += bool(causes) or not judge(CLAIMS, paper_rules(), runs[0], runs[1], "the other run").same
            if named(causes, where):
                right += 1
            else:
                wrong[json.dumps([str(causes[0]) if causes else "none", where])] += 1
        print(f"{name}: noticed {noticed} of {count}, cause named {right}", wrong.most_common(3), flush=True)
    return 0


def main(what="pairs", count="200", *names):
    started = time.time()
    if what == "pairs":
        pairs(int(count))
    else:
        known = LISTED | OTHERS | HOSTILE | HARMLESS
        faults(int(count), {name: known[name] for name in names or known})
    print(f"{time.time() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
