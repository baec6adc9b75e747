"""How long a comparison takes: records of the paper's 4,800 cells on disk, beside the paper and beside another run."""

import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import children_seconds, verdict
from benchmarks.verdict_world import observed, run, world
from kshot.bench.record import CellFacts, Record, table
from kshot.bench.records import Records
from kshot.bench.study import Cell, load_study
from kshot.files import write_table
from kshot.paper.arms import MATRIX
from kshot.stats.panel import FACTS
from kshot.theory.probes.stored import ProbeFolder

LIMIT = 60


def write(arm, root):
    """A simulated run as `kshot run paper`, `kshot run tiers` and `kshot records probe` would leave it."""
    rng, panel = np.random.default_rng(0), arm.panel
    rows = dict(zip(itertools.starmap(Cell, panel.cell_keys()), range(len(panel)), strict=True))
    for study in map(load_study, ("paper", "tiers")):
        Records(root / study.name).claim(study, (), {})
        tables = []
        for cell, specs in study.cells().items():
            if cell in rows:
                found = {name: float(panel.cells[name][rows[cell]]) for name in FACTS if name != "n_classes"}
                facts = CellFacts(True, study.dtype, int(panel.n_classes[rows[cell]]), "", {}, **found)
                records = [_record(panel, rows[cell], cell, spec.name, rng) for spec in specs]
                tables.append(table(study, facts, records))
        write_table(pa.concat_tables(tables), root / study.name, "compact/joined")
    by_dataset = {}
    for name, values in arm.probes.items():
        probe, _, quantity = name.partition(".")
        for row in np.flatnonzero(np.isfinite(values)):
            cell = Cell(*arm.rows[row])
            by_dataset.setdefault(cell.dataset, []).append((cell, probe, {quantity: values[row]}))
    for measured in by_dataset.values():
        ProbeFolder(root / "paper").write(load_study("paper"), "geometry", [measured[0][0]], measured, True)


def _record(panel, row, cell, method, rng):
    accuracy, ratio = (panel.column(method, measure)[row] for measure in ("value", "ratio"))
    if not np.isfinite(accuracy):
        return Record(cell, method, method, ("text",), "undefined", "not at this K")
    n_test = int(panel.n_test[row])
    hits = rng.random(n_test) < accuracy / 100
    chosen = {"lambda": float(ratio)} if np.isfinite(ratio) else {}
    scored = {
        "accuracy": accuracy / 100,
        "n_test": n_test,
        "n_correct": int(hits.sum()),
        "hits": np.packbits(hits).tobytes(),
    }
    return Record(cell, method, method, ("text",), "ok", selected=chosen, fit_seconds=1.0, score_seconds=0.1, **scored)


def main():
    truth, failed = world(0), 0
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / str(number) for number in range(2)]
        for number, folder in enumerate(folders):
            write(observed(truth, run(truth, (0, number)))[MATRIX], folder)
        for words in ([folders[0] / "paper"], [folders[0] / "paper", "--against", folders[1] / "paper"]):
            before, wall = children_seconds(), time.perf_counter()
            command = [sys.executable, "-m", "kshot", "paper", "published", *map(str, words)]
            said = subprocess.run(
                command, check=True, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}
            )
            took, cpu = time.perf_counter() - wall, children_seconds() - before
            against = "another run" if len(words) > 1 else "the paper"
            counted = re.search(r"\d+ of \d+ numbers", said.stdout)
            print(
                f"4,800 cells beside {against}: {took:.1f} s ({cpu:.1f} s of processor time), {counted and counted[0]}"
            )
            failed += verdict(f"a minute against the comparison with {against}", LIMIT / took, 1)
    return failed


if __name__ == "__main__":
    sys.exit(main())
