"""Is a records folder what it says? Every file by its hash, every row by its own arithmetic, each cell once."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.bench.compact import compact, forget
from kshot.bench.parquet import contradictory_rows, is_damaged, move_aside, schema, with_later_columns
from kshot.bench.query import query
from kshot.bench.record import CELL, SECONDS
from kshot.bench.records import Records, restore_header
from kshot.bench.study import Cell
from kshot.data.gate import Finding
from kshot.errors import StudyError

if TYPE_CHECKING:
    import pyarrow as pa


def check_records(folder: Path) -> Iterator[Finding]:
    """Header, files, rows and duplicates; what is missing is no fault, `kshot status` counts it."""
    records = Records(folder)
    yield _header(records)
    files = _files(records)
    bad = [path for path in files if is_damaged(path)]
    whole = [path for path in files if path not in bad]
    yield Finding(not bad, f"{len(whole)} of {len(files)} file(s) are as they were written{_named(bad)}")
    strange = [path for path in whole if why_strange(records, path)]
    reasons = "; ".join(f"{path.name}: {why_strange(records, path)}" for path in strange[:3])
    yield Finding(not strange, f"rows agree with themselves and with the study{reasons and ': '}{reasons}")
    copies, contradicted = _copies(records) if whole else (0, [])
    yield Finding(
        not contradicted, f"{copies} record(s) lie in several files, {len(contradicted)} cell(s) with different numbers"
    )


def repair_records(folder: Path) -> list[str]:
    """Bring the header back, set aside what is broken and join copies; what was done, in sentences."""
    records, done = Records(folder), []
    if not _header(records).passed:
        if not restore_header(folder):
            raise StudyError(
                f"{folder} has no study.json and no copy of it. `kshot run STUDY --records {folder}` with the study "
                "file that filled it writes it again; move a damaged one away first."
            )
        done.append("study.json was brought back from its copy.")
    broken = [path for path in _files(records) if is_damaged(path) or why_strange(records, path)]
    done += [
        f"{path} was moved to {move_aside(folder, path)}; `kshot run` computes its cells again." for path in broken
    ]
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
    """What speaks against the rows of an intact file; nothing where they are fine."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = with_later_columns(pq.ParquetFile(path).read())
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read ({error})"
    lacks = [name for name in schema().names if name not in table.schema.names]
    if lacks:
        return f"lacks the column(s) {', '.join(lacks)}"
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
    found = {Cell(*key) for key in zip(*(table[name].to_pylist() for name in CELL), strict=True)}
    return "" if found <= cells.keys() else f"{len(found - cells.keys())} cell(s) that the study does not have"


def _copies(records: Records) -> tuple[int, list[Cell]]:
    """How many records lie twice, and the cells whose copies say different things."""
    key = ", ".join((*CELL, "method"))
    both = f"select * exclude ({', '.join(SECONDS)}) from (select * from loose union all by name select * from joined)"
    count = f"select coalesce(sum(n - 1), 0) from (select count(*) as n from ({both}) group by {key})"
    differing = (
        f"select distinct {', '.join(CELL)} from (select {key} from (select distinct * from ({both})) "
        f"group by {key} having count(*) > 1) order by all"
    )
    ((copies,),) = query(records.folder, count)
    return int(copies), [Cell(*row) for row in query(records.folder, differing)] if copies else []


def _named(paths: list[Path]) -> str:
    return f"; damaged: {', '.join(str(path) for path in paths[:3])}" if paths else ""
