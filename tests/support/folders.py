"""Changing study files, filling and comparing records, counting computations, refusals of a command."""

from pathlib import Path

from kshot.bench.joined import joined
from kshot.bench.query import query
from kshot.bench.record import SECONDS
from kshot.bench.records import Records
from kshot.bench.run import fill as fill_records
from kshot.data.store import as_store
from kshot.workers import Workers


def edit(path, old, new, to=None) -> None:
    """Replace a part of a text file that must be there, in place or as another file."""
    text = Path(path).read_text()
    assert old in text
    Path(to or path).write_text(text.replace(old, new))


def fill(study, features, records, workers=1, **how):
    """Compute what the records lack of a study; returns the query."""
    asked = query(study, as_store(features))
    records.save(asked)
    fill_records(asked, features, records, Workers(workers), **how)
    return asked


def table(folder, study=""):
    """What a study asked for last, joined with its records; of the only study unless given."""
    records = Records(folder)
    return joined(records.saved(study or records.names()[0]), records)


def comparable(folder, study=""):
    """Everything in the records but the seconds."""
    return table(folder, study).drop_columns([*SECONDS, "made_by"])


def missing(folder, study="") -> int:
    """How many records a study lacks."""
    records = Records(folder)
    return len(records.saved(study or records.names()[0]).keys() - records.keys())


def fits() -> int:
    return Path("fits.log").stat().st_size


def assert_refused(done, *words) -> None:
    """Exit code 2 and one sentence that has these words."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("kshot: ")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
