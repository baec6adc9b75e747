"""What checks of files cost: 50,000 records written and read with hashes in their names and without, and the embedded
study run with every check and without."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from kshot.bench.engines import Workload

from benchmarks.measure import alternate
from benchmarks.status import STUDY
from kshot import files
from kshot.bench import run
from kshot.bench.record import CellFacts, Record
from kshot.bench.records import Records, load_table
from kshot.bench.study import load_study, parse_study

RECORDS_SLOWER, RUN_SLOWER = 0.10, 0.05
# Every cell of a draw costs what it costs in the next one.
DRAWS = (0,)


@contextmanager
def trusting() -> Iterator[None]:
    """As if every file were whole: no hash computed, none compared, no check at the end."""
    with ExitStack() as stands_in:
        for module, name, instead in (
            (files, "_digest", lambda place, content: "0" * files.DIGITS),
            (files, "_fits_its_name", lambda *about: True),
            (run, "check_finished", lambda work, records, shard: None),
        ):
            stands_in.enter_context(patch.object(module, name, instead))
        yield


def trusted(work: Callable[[Path], int], place: Path) -> int:
    with trusting():
        return work(place)


def proven(work: Callable[[Path], int], place: Path) -> int:
    files._fits_its_name.cache_clear()
    return work(place)


def write_records(place: Path) -> int:
    """A fifth of them each time, so that a machine that is busy for a while hurts both sides."""
    study = parse_study(STUDY, "benchmark")
    records, facts = Records(place), CellFacts(True, "float32", 10, "self", {}, 0.9, 1.0, 0.1, 0.8)
    records.claim(study, [], {})
    absent = {cell: specs for cell, specs in study.cells().items() if not records.cell_files(cell)}
    shots, written = min(cell.shots for cell in absent), 0
    for cell, specs in absent.items():
        if cell.shots == shots:
            common = {"accuracy": 0.0, "n_test": 800, "n_correct": 0, "hits": bytes(100)}
            rows = [Record(cell, spec.name, spec.name, ("text",), "ok", **common) for spec in specs]
            records.write(study, facts, rows)
            written += len(rows)
    return written


def read_records(place: Path) -> int:
    return load_table(place).num_rows


def run_embedded(place: Path) -> int:
    """In this process, so that the stand-ins count."""
    study = load_study("embedded")
    study = replace(study, grids=tuple(replace(grid, seeds=DRAWS) for grid in study.grids))
    with tempfile.TemporaryDirectory(dir=place) as records:
        target = Path(records) / "records"
        return load_table(run.complete(study, target, place / "features", in_this_process)).num_rows


def in_this_process(workload: Workload, finished: Callable[[int], None]) -> None:
    for batch in workload.batches:
        finished(workload.run(workload.study, workload.features, workload.target, batch))


def main() -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        sealed, plain = Path(temporary) / "sealed", Path(temporary) / "plain"
        for what, work, allowed, repeats in (
            ("writing records", write_records, RECORDS_SLOWER, len(STUDY["shots"])),
            ("reading records", read_records, RECORDS_SLOWER, 3),
            ("running the embedded study", run_embedded, RUN_SLOWER, 3),
        ):
            for place in (sealed, plain):
                place.mkdir(exist_ok=True)
            faster, ours, theirs, _ = alternate(
                lambda work=work: proven(work, sealed), lambda work=work: trusted(work, plain), repeats
            )
            slower = 1 / faster - 1
            time = f"takes {slower:+.1%} of processor time (allowed {allowed:+.0%})"
            print(f"{what} ({repeats} times {ours:,}) with proof {time}", flush=True)
            missed += slower > allowed or ours != theirs
    return missed
