"""`kshot records check`: check file hashes, the arithmetic of rows, and duplicates; repair what is wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.bench.compact import compact, forget
from kshot.bench.record import KEY, SECONDS, cells_of, contradictory_rows, restore_header, schema
from kshot.bench.records import Records
from kshot.bench.study import Cell
from kshot.data.gate import Finding
from kshot.errors import StudyError
from kshot.files import is_damaged, read_tables, set_aside

if TYPE_CHECKING:
    import pyarrow as pa


def check_records(folder: Path) -> Iterator[Finding]:
    """Check header, files, rows and duplicates; missing cells are not faults, `kshot status` counts them."""
    records = Records(folder)
    yield _header(records)
    files = _files(records)
    bad = [path for path in files if is_damaged(folder, path)]
    whole = [path for path in files if path not in bad]
    named = f"; damaged: {', '.join(str(path) for path in bad[:3])}" if bad else ""
    yield Finding(not bad, f"{len(whole)} of {len(files)} file(s) are as they were written{named}")
    strange = {path: why for path in whole if (why := why_strange(records, path))}
    reasons = "; ".join(f"{path.name}: {why}" for path, why in list(strange.items())[:3])
    yield Finding(not strange, f"rows agree with themselves and with the study{reasons and ': '}{reasons}")
    copies, contradicted = _copies(records) if whole else (0, [])
    yield Finding(
        not contradicted, f"{copies} record(s) lie in several files, {len(contradicted)} cell(s) with different numbers"
    )


def repair_records(folder: Path) -> list[str]:
    """Restore the header, set broken files aside and join copies; return sentences about what was done."""
    records, done = Records(folder), []
    if not _header(records).passed:
        if not restore_header(folder):
            raise StudyError(
                f"{folder} has no study.json and no copy of it. `kshot run STUDY --records {folder}` with the study "
                "file that filled it writes it again; move a damaged one away first."
            )
        done.append("study.json was brought back from its copy.")
    broken = [path for path in _files(records) if is_damaged(folder, path) or why_strange(records, path)]
    done += [f"{path} was moved to {set_aside(folder, path)}; `kshot run` computes its cells again." for path in broken]
    if any(records.files()):
        copies, contradicted = _copies(records)
        if contradicted:
            forget(records, contradicted)
            done.append(f"{len(contradicted)} cell(s) with two different results will be computed again.")
        if copies:
            compact(records)
            done.append(f"{copies} record(s) that lay in several files were joined.")
    return done


def _files(records: Records) -> list[Path]:
    loose, joined = records.files()
    return [*loose, *joined]


def _header(records: Records) -> Finding:
    try:
        study = records.study()
        stated, _ = records.owners()
    except StudyError as error:
        return Finding(False, str(error))
    return Finding(study.hash == stated, f"study.json holds the study {study.name} with hash {stated}")


def why_strange(records: Records, path: Path) -> str:
    """The reason why rows of an intact file are wrong; empty if they are fine."""
    import pyarrow as pa

    try:
        table = read_tables([path], schema())
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read ({error})"
    wrong = contradictory_rows(table)
    if len(wrong):
        return f"{len(wrong)} row(s) whose accuracy, counts and hits differ"
    return _why_foreign(records, table) if records.header.is_file() else ""


def _why_foreign(records: Records, table: "pa.Table") -> str:
    try:
        own, former = records.owners()
        cells = records.study().cells()
    except StudyError:
        return ""
    others = set(table["study_hash"].to_pylist()) - {own, *former}
    if others:
        return f"records of another study, hash {', '.join(sorted(others))}"
    strange = set(cells_of(table)) - cells.keys()
    return f"{len(strange)} cell(s) that the study does not have" if strange else ""


def _copies(records: Records) -> tuple[int, list[Cell]]:
    """The number of records that are stored twice, and the cells whose copies have different numbers."""
    table = read_tables([*records.loose(), *records.joined()], schema()).drop_columns(list(SECONDS))
    first: dict[tuple, dict] = {}
    contradicted: dict[Cell, None] = {}
    for row, cell in zip(table.to_pylist(), cells_of(table), strict=True):
        if first.setdefault(tuple(row[name] for name in KEY), row) != row:
            contradicted[cell] = None
    return len(table) - len(first), list(contradicted)
