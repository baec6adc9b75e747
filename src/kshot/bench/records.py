"""The cache of records: a folder of parquet files that are written once, for all studies.

RECORDS/DIGEST.parquet               rows of one or many cells; the name is a hash of the content
RECORDS/queries/NAME.DIGEST.parquet  what a study asked for last: names, titles, cells, keys or reasons

A file whose content does not hash to its name counts as missing. Rows are only added; of several rows with one key the
first counts that did not fail, rather with answers. `compact` removes a file after its rows stand in another one.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kshot.bench.query import DIGITS, Asked, Query, digest
from kshot.bench.record import ANSWERS, answers_of_row, cells_of, schema, take
from kshot.bench.study import Cell, study_from_json
from kshot.data.episode import class_shots
from kshot.errors import StudyError, unknown
from kshot.files import write_bytes
from kshot.stats.answers import Answers
from kshot.types import CELL, Array

if TYPE_CHECKING:
    import pyarrow as pa

# Reading thousands of files is slow: so many small ones are joined.
MANY, SMALL = 256, 8_000_000
ATTEMPTS = 5
QUERIES = "queries"
# Behind the name of a study: the query of its probes.
PROBES = "~probes"
# Of several rows with one key, these choose.
BEST = ("key", "status", "answered")
logger = logging.getLogger("kshot")
_warned: set[Path] = set()


class Checked(NamedTuple):
    """What the leak check said of a method: a hash of its recipe, the (dataset, backbone) that were looked at, and the
    findings."""

    recipe: str
    strata: Sequence[Sequence[str]]
    leaks: Sequence[str]


class Records:
    """One folder of records."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self._read: dict[tuple, pa.Table] = {}

    def keys(self, *, failed: bool = True, answers: bool = False) -> set[str]:
        """The keys of all rows; without those that failed, or that keep no answers where they could.

        A file is read once, unless it changes.
        """
        columns, files = ["key", "status", "answered"], self._files()
        self._read = {file: self._read[file] for file in files if file in self._read}
        self._read |= {file: _whole(path, columns) for file, path in files.items() if file not in self._read}
        lists = ([table[name].to_pylist() for name in columns] for table in self._read.values())
        return {
            key
            for table in lists
            for key, status, answered in zip(*table, strict=True)
            if (failed or status != "failed") and (not answers or answered or status != "ok")
        }

    def table(self, keys: Collection[str], columns: Sequence[str] = ()) -> "pa.Table":
        """One row of each key, in no order; all columns but the answers unless given."""
        kept = [name for name in schema().names if name not in ANSWERS]
        whole = self._gather(list(dict.fromkeys([*BEST, *(columns or kept)])))
        return take(whole, _first_of_each(whole, keys)).combine_chunks()

    def answers(self, table: "pa.Table", metrics: Mapping[str, Callable[[Answers], float]]) -> dict[str, Array]:
        """Every metric of every row of a table, which has keys and cells; NaN where no answers were kept."""
        values = {name: np.full(table.num_rows, np.nan) for name in metrics}
        places: dict[str, list[int]] = {}
        for number, key in enumerate(table["key"].to_pylist()):
            places.setdefault(key, []).append(number)
        cells, classes = cells_of(table), table["n_classes"].to_pylist()
        for path in self._files().values():
            part = _whole(path, ["key", "answered", *ANSWERS])
            for number, (key, answered) in enumerate(zip(*(part[n].to_pylist() for n in BEST[::2]), strict=True)):
                if answered and key in places:
                    columns = {name: part[name][number] for name in ANSWERS}
                    arrays = {name: value.values.to_numpy(zero_copy_only=False) for name, value in columns.items()}
                    first = places[key][0]
                    unseen = _unseen(cells[first], classes[first])
                    kept = answers_of_row(arrays, classes[first], unseen)
                    for name, metric in metrics.items():
                        values[name][places[key]] = metric(kept)
        return values

    def add(self, table: "pa.Table") -> Path:
        """Write rows whole or not at all."""
        content = parquet(table)
        path = self.folder / f"{_digest(content)}.parquet"
        write_bytes(path, content)
        return path

    def compact(self, least: int = 2) -> int:
        """Join the small files if there are so many; returns how many. Others may read, write and join meanwhile."""
        import pyarrow as pa

        paths = [path for (_, _, size), path in self._files().items() if size < SMALL]
        if len(paths) < least:
            return 0
        whole = {path: table for path in paths if (table := _whole(path, schema().names)).num_rows}
        if len(whole) < least:
            return 0
        rows = pa.concat_tables(whole.values())
        joined = self.add(take(rows, _first_of_each(rows)))
        for path in whole.keys() - {joined}:
            path.unlink(missing_ok=True)
        return len(whole)

    def drop(self, keys: Collection[str]) -> int:
        """Remove the rows with these keys; returns how many. Nothing else ever removes a row."""
        removed = 0
        for path in self._files().values():
            table = _whole(path, schema().names)
            kept = take(table, (row for row, key in enumerate(table["key"].to_pylist()) if key not in keys))
            if kept.num_rows < table.num_rows:
                removed += table.num_rows - kept.num_rows
                replacement = self.add(kept) if kept.num_rows else None
                if path != replacement:
                    path.unlink(missing_ok=True)
        return removed

    def save(self, asked: Query, name: str = "", checked: Mapping[str, Checked] | None = None) -> Path:
        """Keep what a study asks for, for reports and counts without its features; the last one of a name counts.

        `checked` joins what the leak check said before, unless that was of other code.
        """
        import pyarrow as pa

        rows = [
            {**dict(zip(CELL, astuple(cell), strict=True)), "method": method, "title": titled(one, asked)}
            | {"key": one.key, "reason": one.reason}
            for cell, named in asked.cells.items()
            for method, one in named.items()
        ]
        about = {
            "study": asked.study.to_json(),
            "dropped": json.dumps(sorted(map(astuple, asked.dropped))),
            "recipes": json.dumps(asked.source.recipes, sort_keys=True, default=list),
            "sees": json.dumps({name: sorted(info.sees) for name, info in asked.source.infos.items()}, sort_keys=True),
        }
        name = name or asked.study.name
        if known := {**self._checked(name, asked), **(checked or {})}:
            about["checked"] = json.dumps(known, sort_keys=True)
        content = parquet(pa.Table.from_pylist(rows, schema=_query_schema().with_metadata(about)))
        path = self.folder / QUERIES / f"{name}.{_digest(content)}.parquet"
        if not path.is_file() or path.read_bytes() != content:
            write_bytes(path, content)
        for other in self._saved().get(name, []):
            if other != path:
                other.unlink(missing_ok=True)
        return path

    def _checked(self, name: str, asked: Query) -> dict[str, Checked]:
        recipes = asked.source.recipes
        with suppress(StudyError):
            before = self.saved(name).checked.items()
            return {name: one for name, one in before if name not in recipes or one.recipe == digest(recipes[name])}
        return {}

    def names(self) -> list[str]:
        """The studies that asked for records here."""
        return sorted(name for name in self._saved() if not name.endswith(PROBES))

    def saved(self, name: str) -> "SavedQuery":
        """What the study of that name asked for last."""
        for _ in range(ATTEMPTS):
            paths = self._saved().get(name, [])
            with suppress(FileNotFoundError):
                tables = [table for path in paths if (table := _read_whole(path)) is not None]
                if tables:
                    return SavedQuery(tables[-1])
                if not paths:
                    break
        raise self._not_there(name)

    def has(self, name: str) -> bool:
        return name in self._saved()

    def _not_there(self, name: str) -> StudyError:
        if (self.folder / "study.json").is_file():
            return StudyError(
                f"{self.folder} holds records of kshot 0.2. Type: python tools/adopt.py {self.folder} records"
            )
        step = f"Looked in {self.folder}. Run `kshot run {name or 'STUDY'}` first."
        return StudyError(unknown("study", name, self.names(), step))

    def _saved(self) -> dict[str, list[Path]]:
        """The saved queries by name, the newest last."""
        saved: dict[str, list[tuple[int, Path]]] = {}
        for path in (self.folder / QUERIES).glob("[!.]*.parquet"):
            with suppress(FileNotFoundError):
                saved.setdefault(path.stem.rpartition(".")[0], []).append((path.stat().st_mtime_ns, path))
        return {name: [path for _, path in sorted(pairs)] for name, pairs in saved.items()}

    def _files(self) -> dict[tuple, Path]:
        """The files of rows by name, time and size."""
        files = {}
        for path in sorted(self.folder.glob("[!.]*.parquet")):
            with suppress(FileNotFoundError):
                about = path.stat()
                files[path.name, about.st_mtime_ns, about.st_size] = path
        return files

    def _gather(self, columns: list[str]) -> "pa.Table":
        """The rows of all files, listed again where another process joined some of them meanwhile."""
        import pyarrow as pa

        tables: list[pa.Table] = []
        for _ in range(ATTEMPTS):
            files = self._files()
            tables = [_whole(path, columns) for path in files.values()]
            if self._files().keys() >= files.keys():
                break
        return pa.concat_tables([_no_rows(columns), *tables])


class SavedQuery:
    """What a study asked for: one row a cell and method, with key or reason."""

    def __init__(self, table: "pa.Table"):
        about = {name.decode(): text.decode() for name, text in (table.schema.metadata or {}).items()}
        self.table = table
        self.study = study_from_json(about["study"])
        self.dropped = [Cell(*values) for values in json.loads(about["dropped"])]
        self.recipes: dict[str, dict] = json.loads(about["recipes"])
        self.sees: dict[str, list[str]] = json.loads(about["sees"])
        self.checked = {name: Checked(*values) for name, values in json.loads(about.get("checked", "{}")).items()}

    def keys(self) -> set[str]:
        return set(self.table["key"].to_pylist()) - {""}


def titled(asked: Asked, whole: Query) -> str:
    """What tables call a method."""
    spec, info = asked.spec, whole.source.infos[asked.spec.name]
    return spec.title or (info.title if spec.name == info.key else f"{info.title} ({spec.name})")


def parquet(table: "pa.Table") -> bytes:
    """The content of a parquet file; the same for the same rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(table, sink := pa.BufferOutputStream(), compression="zstd", write_statistics=False)
    return sink.getvalue().to_pybytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _read_whole(path: Path, columns: Sequence[str] | None = None) -> "pa.Table | None":
    """Columns of a file that is as it was written, None of another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = path.read_bytes()
    if path.stem.rpartition(".")[2] == _digest(content):
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            return file.read(columns, use_threads=False)
    if path not in _warned:
        _warned.add(path)
        logger.warning("%s is damaged and counts as missing; `kshot run` computes its records again.", path)
    return None


def _whole(path: Path, columns: Sequence[str]) -> "pa.Table":
    """Columns of a file; no rows of a damaged one, or of one that another process joined with others."""
    table = None
    with suppress(FileNotFoundError):
        table = _read_whole(path, list(columns))
    return _no_rows(columns) if table is None else table.select(list(columns)).replace_schema_metadata()


def _no_rows(columns: Sequence[str]) -> "pa.Table":
    import pyarrow as pa

    return pa.Table.from_batches([], pa.schema([schema().field(name) for name in columns]))


def _first_of_each(table: "pa.Table", keys: Collection[str] | None = None) -> list[int]:
    """The row of each key that counts, by number."""
    best: dict[str, tuple] = {}
    for number, (key, status, answered) in enumerate(zip(*(table[name].to_pylist() for name in BEST), strict=True)):
        if keys is None or key in keys:
            order = status == "failed", not answered, number
            best[key] = min(best.get(key, order), order)
    return sorted(number for *_, number in best.values())


def _query_schema() -> "pa.Schema":
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        [*(schema().field(name) for name in CELL), *((n, text) for n in ("method", "title", "key", "reason"))]
    )


def _unseen(cell: Cell, n_classes: int) -> "Array | None":
    """True for classes without shots, which follow from the cell's names."""
    if cell.profile != "missing":
        return None
    no_labels = np.empty(0, np.int64)
    return class_shots(cell.profile, cell.dataset, no_labels, n_classes, cell.shots, cell.seed) == 0
