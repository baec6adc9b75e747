"""What hashes in 10,000 records cost: writing and reading them with their seals, against the same files without."""

import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.measure import alternate
from benchmarks.status import STUDY
from kshot.bench.records import folder, integrity
from kshot.bench.records.folder import Records
from kshot.bench.records.query import load_table
from kshot.bench.records.schema import CellFacts, Record
from kshot.bench.study import parse_study
from kshot.files import write_bytes

MOST_SLOWER = 0.10


def unsealed(table, path, **options) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_bytes(path, sink.getvalue().to_pybytes())


@contextmanager
def trusting():
    """Reading as if every file were whole."""
    with patch.object(integrity, "is_damaged", lambda path: False):
        yield


def main() -> int:
    # A fifth of 50,000 records tells the ratio as well; the disk is flushed once per file.
    study = parse_study({**STUDY, "datasets": STUDY["datasets"][:5]}, "benchmark")
    facts = CellFacts(True, "float32", 10, "self", {}, 0.9, 1.0, 0.1, 0.8)

    def write(records: Records) -> None:
        for cell, specs in study.cells().items():
            rows = [
                Record(
                    cell,
                    s.name,
                    s.name,
                    ("text",),
                    "ok",
                    accuracy=0.0,
                    n_test=800,
                    n_correct=0,
                    hits=bytes(100),
                )
                for s in specs
            ]
            records.write(study, facts, rows)

    with tempfile.TemporaryDirectory() as temporary:
        sealed, plain = Records(Path(temporary) / "sealed"), Records(Path(temporary) / "plain")
        sealed.claim(study, [], {})
        plain.claim(study, [], {})

        def write_plain() -> None:
            with patch.object(folder, "write_sealed", unsealed):
                write(plain)

        def read_plain() -> int:
            with trusting():
                return load_table(plain.folder).num_rows

        def read_sealed() -> int:
            integrity._is_intact.cache_clear()
            return load_table(sealed.folder).num_rows

        writing, _, _, _ = alternate(lambda: write(sealed), write_plain, repeats=1)
        reading, ours, theirs, _ = alternate(read_sealed, read_plain)
    slower = {"writing": 1 / writing - 1, "reading": 1 / reading - 1}
    for what, share in slower.items():
        print(
            f"{what} {ours:,} records with seals takes {share:+.1%} of processor time (allowed {MOST_SLOWER:+.0%})"
        )
    return sum(share > MOST_SLOWER for share in slower.values()) + (ours != theirs)


if __name__ == "__main__":
    raise SystemExit(main())
