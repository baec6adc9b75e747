"""Peak memory of every head at C=1000, K=16 and 16,000 queries, each in a process of its own."""

import subprocess
import sys

from benchmarks.measure import Claim, report

HEADS = {
    "gda_alpha_loo": {},
    "clap": {"epochs": 1},
    "lpp": {"epochs": 1},
    "clip_adapter": {"epochs": 1},
    "hoso": {"epochs": 1},
    "tip_adapter_loo": {"beta_points": 1, "alpha_points": 2},
    "tip_adapter_test": {"beta_points": 1, "alpha_points": 2},
    "logistic_probe_test": {"max_iterations": 1},
}


def peak_gigabytes(name: str) -> float:
    code = f"from benchmarks.memory import fit_one; fit_one({name!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def fit_one(name: str) -> None:
    """Fit, predict and print this process's peak; one epoch or one grid line holds as much as all of them."""
    import resource

    from benchmarks.data import data
    from kshot.methods import registry

    problem = data(1000, 16, n=16_000)
    method = registry.create(name, **HEADS[name])
    given = {"text": problem.text, "test": (problem.queries, problem.labels)}
    wanted = {key: value for key, value in given.items() if key in method.info.sees}
    method.fit(problem.X, problem.y, **wanted).predict(problem.queries)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def main() -> bool:
    what = "{}, C=1000, K=16, 16,000 queries: peak memory"
    return report([Claim(what.format(name), peak_gigabytes(name), 3, " GB", at_most=True) for name in HEADS])


if __name__ == "__main__":
    main()
