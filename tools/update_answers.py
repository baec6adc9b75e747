"""Compute the kept answers of some methods again: `python -m tools.update_answers docs/beyond/beyond zero_shot ncm`.

For heads whose probabilities have changed while their predictions have not: a head that hits other pictures than its
record says is an error, and nothing of its cell is written. `--features FOLDER` where the sets do not come with kshot.
"""

import argparse
from pathlib import Path

from kshot.bench.cell import load_cell, run_method
from kshot.bench.record import CELL
from kshot.bench.records import Records, load_table
from kshot.bench.study import Cell
from kshot.bench.work import CellBatch
from kshot.data.store import Store


def update(folder: Path, methods: list[str], features: Path) -> int:
    """How many answers were written."""
    records = Records(folder)
    study = records.study()
    rows = [row for row in load_table(folder).to_pylist() if row["method"] in methods and row["status"] == "ok"]
    hashes = frozenset(manifest.sha256 for manifest in Store(features).readable())
    written = 0
    for row in sorted(rows, key=lambda row: [row[name] for name in CELL]):
        cell = Cell(*(row[name] for name in CELL))
        spec = study.methods()[row["method"]]
        stratum, prior = load_cell(study, features, CellBatch((cell,), (spec,), hashes), cell)
        episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
        record = run_method(cell, spec, episode, stratum, prior, study.min_residue, keep_answers=True)
        if record.hits != row["hits"]:
            raise SystemExit(
                f"{spec.name} answers otherwise than its record in {cell}: {record.reason or 'other hits'}."
            )
        records.write_answers([record])
        written += 1
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--features", type=Path, default=Path("features"))
    given = parser.parse_args()
    print(update(given.records, given.methods, given.features), "answers written")
