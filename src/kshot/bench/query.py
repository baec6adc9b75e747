"""SQL over files of records, while other processes write and join them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kshot.bench.parquet import LATER_COLUMNS
from kshot.bench.record import CELL
from kshot.bench.records import Records
from kshot.bench.study import Cell
from kshot.errors import StudyError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

LOOKS = 5
T = TypeVar("T")


def query(folder: Path | str, sql: str) -> list[tuple]:
    """SQL over the views `records` (each record once), `loose` (single cells) and `joined` (compacted)."""
    return _taken(Records(folder), sql, lambda rows: rows.fetchall())


def load_table(folder: Path | str) -> "pa.Table":
    """All records, in an order that does not depend on how they were computed."""
    sql = f"select * from records order by {', '.join(CELL)}, method"
    return _taken(Records(folder), sql, lambda rows: rows.to_arrow_table())


def failed_cells(records: Records) -> list[Cell]:
    """The cells in which some method failed."""
    sql = f"select distinct {', '.join(CELL)} from records where status = 'failed' order by all"
    return [Cell(*row) for row in query(records.folder, sql)]


def failed_records(records: Records) -> dict[str, int]:
    """How many records of each method are failures."""
    if not records.loose() and not records.joined():
        return {}
    sql = "select method, count(*) from records where status = 'failed' group by method order by method"
    return dict(query(records.folder, sql))


def quoted(text: object) -> str:
    """A string in SQL; names, paths and headers come from outside."""
    return "'" + str(text).replace("'", "''") + "'"


def _taken(records: Records, sql: str, take: "Callable[[duckdb.DuckDBPyRelation], T]") -> T:
    """What `take` makes of the rows.

    Another process may join files between our listing and our reading them; then we look again.
    """
    import duckdb

    for _ in range(LOOKS - 1):
        try:
            return take(_relation(records, sql))
        except duckdb.IOException:
            continue
        except duckdb.Error:
            break
    try:
        return take(_relation(records, sql))
    except duckdb.Error as error:
        raise StudyError(
            f"the records in {records.folder} cannot be read ({error}). Type `kshot records check {records.folder}`."
        ) from error


def _relation(records: Records, sql: str) -> "duckdb.DuckDBPyRelation":
    import duckdb

    loose, joined = records.sources()
    connection = duckdb.connect()
    nothing = f"select {', '.join(f'null::varchar as {column}' for column in LATER_COLUMNS)} where false"
    filled = ", ".join(f"coalesce({column}, {quoted(old)}) as {column}" for column, old in LATER_COLUMNS.items())
    for name, paths in (("loose", loose), ("joined", joined)):
        source = _parquet(paths) if paths else f"{_parquet((loose or joined)[:1])} limit 0"
        whole = f"(select * from {source}) union all by name ({nothing})"
        connection.execute(f"create view {name} as select * replace ({filled}) from ({whole})")
    # A cell that was computed again lies in a file of its own beside its compacted former self.
    key = ", ".join((*CELL, "method"))
    both = "select *, 0 as age from loose union all by name select *, 1 as age from joined"
    once = f"select * exclude age from ({both}) qualify row_number() over (partition by {key} order by age) = 1"
    everything = once if joined else "select * from loose"
    connection.execute(f"create view records as select * replace ({_owner(records)}) from ({everything})")
    return connection.sql(sql)


def _parquet(paths: list[Path]) -> str:
    """SQL for these very files: no pattern is expanded, and no folder's name is taken for a column."""
    names = (re.sub(r"[*?[]", r"[\g<0>]", str(path.absolute())) for path in paths)
    return f"read_parquet([{', '.join(map(quoted, names))}], hive_partitioning = false, union_by_name = true)"


def _owner(records: Records) -> str:
    """SQL for a record's study hash: records of the studies that the folder's study extends count as its own."""
    own, former = records.owners()
    if not former:
        return "study_hash as study_hash"
    return f"if(study_hash in ({', '.join(map(quoted, former))}), {quoted(own)}, study_hash) as study_hash"
