"""Peak memory of every head at C=1000, K=16 and 16,000 queries, and of features made of a large file of rows, each in
a process of its own."""

import subprocess
import sys
import tempfile
import time

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


def write_rows(path: str, rows: int, dim: int, length: float) -> None:
    """float16 rows of this length, half a million rows or fewer at once."""
    import numpy as np

    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(path, "w+", np.float16, (rows, dim))
    for low in range(0, rows, 1 << 16):
        X = rng.standard_normal((min(1 << 16, rows - low), dim), np.float32)
        file[low : low + len(X)] = length * X / np.linalg.norm(X, axis=1, keepdims=True)


def hold_rows(path: str) -> None:
    """Make features of the file and print this process's peak."""
    import numpy as np

    from benchmarks.measure import peak_gigabytes
    from kshot import Features

    X, classes = np.load(path, mmap_mode="r"), 1000
    y = np.arange(len(X)) % classes
    test = np.array(X[: 10 * classes]) + np.float16(0.01), y[: 10 * classes]
    Features.from_arrays("rows", pool=(X, y), test=test, text=np.array(X[:classes], np.float32))
    print(peak_gigabytes())


def features_missed(rows: int, dim: int = 512) -> int:
    """Features of a file may take 1.5 times its bytes and 200 MB."""
    missed, given = 0, rows * dim * 2 / 1e9
    allowed = 1.5 * given + 0.2
    with tempfile.TemporaryDirectory() as folder:
        for length in (1.0, 10.0):
            write_rows(path := f"{folder}/rows.npy", rows, dim, length)
            code = f"from benchmarks.memory import hold_rows; hold_rows({path!r})"
            start = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            peak, taken = float(done.stdout), time.perf_counter() - start
            missed += peak > allowed
            print(
                f"features of {given:.2f} GB, rows of length {length:g}: peak {peak:.2f} GB (allowed {allowed:.2f}), "
                f"{taken:.0f} s"
            )
    return missed


def main() -> int:
    missed = features_missed(1_281_167)
    for name in HEADS:
        peak = peak_of(name)
        missed += peak > ALLOWED_GIGABYTES
        print(f"{name}, C=1000, K=16, 16,000 queries: peak {peak:.2f} GB (allowed {ALLOWED_GIGABYTES})")
    return missed
