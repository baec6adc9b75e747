"""Peak memory of every head at C=1000, K=16 and 16,000 queries, each in a process of its own."""

import subprocess
import sys

ALLOWED_GIGABYTES = 3
HEADS = {
    "gda_alpha_loo": {},
    "clap": {"epochs": 1},
    "lpp": {"epochs": 1},
    "clip_adapter": {"epochs": 1},
    "hoso": {"epochs": 1},
    "tip_adapter_loo": {"beta_points": 1, "alpha_points": 2},
    "tip_adapter_test": {"beta_points": 1, "alpha_points": 2},
    "logistic_probe_test": {"max_iterations": 1},
    "ss_text_plus": {},
    "taskres": {"epochs": 1},
    "tip_adapter_f": {"epochs": 1},
    "rla": {"epochs": 1},
    "cross_modal_lp": {"iterations": 2},
    "ape": {},
    "proker": {},
    "transclip_aligned": {},
}


def peak_of(name: str) -> float:
    code = f"from benchmarks.memory import fit_one; fit_one({name!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def fit_one(name: str) -> None:
    """Fit, predict and print this process's peak; one epoch or one grid line holds as much as all of them."""
    from benchmarks.data import data
    from benchmarks.measure import peak_gigabytes
    from kshot.methods import registry

    problem = data(1000, 16, n=16_000)
    method = registry.create(name, **HEADS[name])
    given = {"text": problem.text, "test": (problem.queries, problem.labels), "queries": problem.queries}
    wanted = {key: value for key, value in given.items() if key in method.info.sees}
    method.fit(problem.X, problem.y, **wanted).predict(problem.queries)
    print(peak_gigabytes())


def main() -> int:
    missed = 0
    for name in HEADS:
        peak = peak_of(name)
        missed += peak > ALLOWED_GIGABYTES
        print(f"{name}, C=1000, K=16, 16,000 queries: peak {peak:.2f} GB (allowed {ALLOWED_GIGABYTES})")
    return missed
