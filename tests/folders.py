"""Changing study files, comparing records folders, counting computations, refusals of a command."""

from pathlib import Path

from kshot.bench.record import SECONDS
from kshot.bench.records import load_table
from kshot.bench.run import ThisProcess, compute, open_run


def edit(path, old, new, to=None) -> None:
    """Replace a part of a text file that must be there, in place or as another file."""
    text = Path(path).read_text()
    assert old in text
    Path(to or path).write_text(text.replace(old, new))


def fill(study, features, records, engine=None) -> None:
    """Compute what the records lack of a study."""
    compute(open_run(study, features, records), features, records, engine or ThisProcess())


def comparable(folder):
    """Everything in the records but the seconds."""
    return load_table(folder).drop_columns(list(SECONDS))


def stamps(folder) -> dict:
    """When each cell's file was written; a finished cell must never be written again."""
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("K*.parquet")}


def fits() -> int:
    return Path("fits.log").stat().st_size


def assert_refused(done, *words) -> None:
    """Exit code 2 and one sentence that has these words."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("kshot: ")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
