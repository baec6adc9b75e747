"""`kshot status` and `compact` on 50,000 records."""

import subprocess
import sys
import tempfile
from pathlib import Path

from kshot.bench.compact import compact

from benchmarks.measure import best_seconds
from kshot.bench.record import CellFacts, Record
from kshot.bench.records import Records, load_table
from kshot.bench.study import parse_study

METHODS = [
    "zero_shot",
    "ncm",
    "js_blend",
    "loo_blend",
    "loo_blend_kcorr",
    "oracle_lambda",
    "mse_oracle",
    "centred_js_blend",
]
STUDY = {
    "name": "large",
    "datasets": [f"d{n}" for n in range(25)],
    "backbones": [f"b{n}" for n in range(5)],
    "tiers": ["photo", "dataset"],
    "shots": [1, 2, 4, 8, 16],
    "seeds": list(range(5)),
    "methods": METHODS,
}
ALLOWED_SECONDS = 1.0


def main() -> int:
    study = parse_study(STUDY, "benchmark")
    facts = CellFacts(True, "float32", 10, "self", {}, 0.9, 1.0, 0.1, 0.8)
    with tempfile.TemporaryDirectory() as temporary:
        records = Records(Path(temporary) / "records")
        records.claim(study, [], {})
        for cell, specs in study.cells().items():
            rows = [
                Record(cell, s.name, s.name, ("text",), "ok", accuracy=0.5, n_test=800, hits=bytes(100)) for s in specs
            ]
            records.write(study, facts, rows)

        def status() -> None:
            subprocess.run(
                [sys.executable, "-m", "kshot", "status", str(records.folder)], capture_output=True, check=True
            )

        loose = best_seconds(status)
        before = load_table(records.folder)
        joined = compact(records)
        kept = load_table(records.folder).equals(before)
        seconds = best_seconds(status)
    print(f"{before.num_rows:,} records; status on {joined:,} single files {loose:.2f} s")
    print(f"status after compact {seconds:.2f} s (allowed {ALLOWED_SECONDS}); compact kept every row: {kept}")
    return (seconds > ALLOWED_SECONDS) + (not kept)
