"""Other people's records: their table and a TOML file that names its columns become a records folder of its own."""

import csv
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from kshot.bench.record import KEY, schema, write_header
from kshot.bench.study import LARGEST, Cell, Grid, MethodSpec, Study, check_keys
from kshot.data import catalog
from kshot.errors import InputError, KshotError, StudyError, unknown
from kshot.files import safe_name, sha256, write_table
from kshot.methods import registry
from kshot.types import BALANCED, IMPORTED

AXES = ("dataset", "backbone", "tier", "shots", "seed", "method")
TABLES = ("columns", "constant", "names", "chosen", "methods")


@dataclass(frozen=True)
class ImportedRecords:
    """The folder that was written, its numbers of records and cells, and notes for the user."""

    folder: Path
    records: int
    cells: int
    notes: tuple[str, ...]


def import_records(file: Path, mapping: Path, output: Path | None = None) -> ImportedRecords:
    """Check every row, then write a folder that did not exist; records/NAME unless given."""
    about = _read_mapping(mapping)
    rows = _read_table(file)
    folder = output or Path("records") / about["name"]
    if folder.exists():
        raise StudyError(f"{folder} exists already; imported records are not mixed with others. Give another --output.")
    found: dict[tuple, dict[str, Any]] = {}
    for number, row in enumerate(rows, 2 if file.suffix == ".csv" else 1):
        try:
            record = _record(row, about)
        except (KshotError, ValueError, TypeError) as error:
            raise InputError(f"{file}, row {number}: {error}") from None
        key = tuple(record[name] for name in KEY)
        if key in found:
            raise InputError(f"{file}, row {number}: a second record of {', '.join(map(str, key))}.")
        found[key] = record
    percent = any((record["accuracy"] or 0) > 1 for record in found.values())
    tiny = [record for record in found.values() if percent and 0 < (record["accuracy"] or 0) <= 1]
    for record in found.values():
        if percent and record["accuracy"] is not None:
            record["accuracy"] /= 100
    study = Study(about["name"], _grids(found))
    source = {"file": file.name, "sha256": sha256(file), "mapping": about, "rounding": _rounding(found.values())}
    _write(folder, study, list(found.values()), source)
    cells = {key[:-1] for key in found}
    notes = [f"accuracies were read as {'per cent' if percent else 'shares of 1'}"]
    if tiny:
        notes.append(f"{len(tiny)} of {len(found)} of them are at most 1; if they are shares, write all of them alike")
    notes += _unfamiliar(found)
    return ImportedRecords(folder, len(found), len(cells), tuple(notes))


def _read_mapping(path: Path) -> dict[str, Any]:
    """The mapping with all its tables; every mistake is one sentence."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not valid TOML ({error}).") from None
    check_keys(content, ("name", "draws", *TABLES), str(path), error=InputError)
    about = {"name": path.stem, **{table: {} for table in TABLES}, **content}
    if not all(isinstance(about.get(key, ""), str) for key in ("name", "draws")):
        raise InputError(f"{path}: name and draws are words in quotes.")
    safe_name("study", about["name"])
    kinds = {"columns": str, "constant": str | int, "names": dict, "chosen": str, "methods": dict}
    for table, kind in kinds.items():
        if not isinstance(about[table], dict) or not all(isinstance(value, kind) for value in about[table].values()):
            raise InputError(
                f"{path}: [{table}] is not of the form of docs/other-peoples-runs.md; given was {about[table]}."
            )
    for table, allowed in {"columns": (*AXES, "accuracy"), "constant": AXES, "names": AXES}.items():
        check_keys(about[table], allowed, str(path), f"key in [{table}]", InputError)
    for axis in (*AXES, "accuracy"):
        if (axis in about["columns"]) == (axis in about["constant"]):
            raise InputError(
                f"{path}: name the column of {axis} in [columns], or its value in [constant] if it is always the same; "
                "one of the two."
            )
    return about


def _read_table(path: Path) -> list[dict[str, Any]]:
    """Rows of CSV, JSON lines or parquet."""
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as opened:
                rows: list[dict[str, Any]] = list(csv.DictReader(opened))
        elif path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows = pq.read_table(path).to_pylist()
        elif path.suffix in (".jsonl", ".ndjson", ".json"):
            lines = path.read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
        else:
            raise InputError(f"{path} is of no known kind; known are .csv, .jsonl and .parquet.")
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read ({error}).") from None
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} holds no rows with named columns.")
    return rows


def _record(row: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """One row in the columns of our records; the accuracy as it is given."""
    named = {axis: _value(row, about, axis) for axis in AXES}
    for axis, least in (("shots", 1), ("seed", 0)):
        try:
            whole = float(named[axis])
        except ValueError:
            whole = float("nan")
        if not whole.is_integer() or not least <= whole <= LARGEST:
            raise InputError(
                f"{axis} is {named[axis]}; allowed are whole numbers from {least} up. Name them in [names.{axis}]."
            )
        named[axis] = int(whole)
    for axis in ("dataset", "backbone", "tier"):
        try:
            named[axis] = safe_name(axis, str(named[axis]))
        except KshotError as error:
            raise InputError(f"{error} Say what kshot calls it in [names.{axis}].") from None
    entry, accuracy = catalog.dataset_entry(named["dataset"]), _cell(row, about["columns"]["accuracy"])
    accuracy = None if accuracy is None else float(accuracy)
    if accuracy is not None and not 0 <= accuracy <= 100:
        raise InputError(f"accuracy is {accuracy:g}; allowed are 0 to 100, or 0 to 1.")
    chosen = {name: _number(_cell(row, column)) for name, column in about["chosen"].items()}
    named["method"] = str(named["method"])
    return {
        **named,
        "profile": BALANCED,
        **_method(named["method"], about["methods"]),
        "status": "undefined" if accuracy is None else "ok",
        "reason": "their table has no accuracy here" if accuracy is None else "",
        "accuracy": accuracy,
        "n_test": (entry.n_test if entry else None) or 0,
        "hits": b"",
        "selected": json.dumps({name: value for name, value in chosen.items() if value is not None}, sort_keys=True),
        "selected_from": "{}",
        "views": "{}",
        "n_classes": entry.classes if entry else None,
        "simulated": False,
        "protocol": IMPORTED,
        "dtype": "float32",
        "version": IMPORTED,
        "code": "",
        "feature_hashes": "{}",
    }


def _value(row: Mapping[str, Any], about: Mapping[str, Any], axis: str) -> Any:
    """The value on an axis, under the name that kshot has for it."""
    if axis in about["constant"]:
        return about["constant"][axis]
    given = _cell(row, about["columns"][axis])
    if given is None:
        raise InputError(f"{about['columns'][axis]} is empty.")
    return about["names"].get(axis, {}).get(str(given), given)


def _cell(row: Mapping[str, Any], column: str) -> Any:
    if column not in row:
        raise InputError(unknown("column", column, map(str, row), "Correct it in [columns] or [chosen]."))
    value = row[column].strip() if isinstance(row[column], str) else row[column]
    return None if value in ("", None) or value != value else value


def _number(value: Any) -> Any:
    """A chosen value: a number where it is one, a list where it is written as one."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _method(name: str, described: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Title and evidence: as the mapping says, as kshot's method of that name has them, or text and shots."""
    own = described.get(name, {})
    info = registry.info(name) if name in registry.BUILTIN else None
    return {
        "title": own.get("title", info.title if info else name),
        "sees": sorted(own.get("sees", info.sees if info else ("support", "text"))),
    }


def _rounding(records: Iterable[Mapping[str, Any]]) -> float:
    """The step of printed accuracies in percentage points; zero where they have more than four decimals."""
    points = np.array([100 * record["accuracy"] for record in records if record["accuracy"] is not None])
    steps = (10.0**-decimals for decimals in range(5))
    return next((step for step in steps if np.abs(points / step - np.round(points / step)).max(initial=0) < 1e-6), 0.0)


def _grids(records: Mapping[tuple, Mapping[str, Any]]) -> tuple[Grid, ...]:
    """Grids that hold exactly these cells and methods."""
    methods: dict[Cell, list[str]] = {}
    for key in records:
        methods.setdefault(Cell(*key[:-1]), []).append(key[-1])
    seeds: dict[tuple, list[int]] = {}
    for cell, names in sorted(methods.items(), key=lambda item: (str(item[0]), item[0].seed)):
        stratum = cell.dataset, cell.backbone, cell.tier, tuple(sorted(names)), cell.shots
        seeds.setdefault(stratum, []).append(cell.seed)
    shots: dict[tuple, list[int]] = {}
    for (*stratum, k), drawn in seeds.items():
        shots.setdefault((*stratum, tuple(sorted(drawn))), []).append(k)
    return tuple(
        Grid((dataset,), (backbone,), (tier,), tuple(sorted(ks)), drawn, tuple(MethodSpec(m, m) for m in names))
        for (dataset, backbone, tier, names, drawn), ks in shots.items()
    )


def _write(folder: Path, study: Study, rows: Sequence[dict[str, Any]], source: dict[str, Any]) -> None:
    import pyarrow as pa

    whose = {"study": study.name, "study_hash": study.hash}
    content = {"hash": study.hash, "study": json.loads(study.to_json()), "dropped": [], "features": {}, "extends": []}
    write_header(folder, content | {"imported": source})
    write_table(pa.Table.from_pylist([whose | row for row in rows], schema=schema()), folder, "compact/joined")


def _unfamiliar(records: Mapping[tuple, Any]) -> list[str]:
    """One note for each name that kshot does not know."""
    known = {
        "dataset": list(catalog.datasets()),
        "backbone": list(catalog.backbones()),
        "tier": list(catalog.tiers()),
        "method": registry.names(),
    }
    notes = []
    for axis, names in known.items():
        for name in sorted({key[KEY.index(axis)] for key in records} - set(names)):
            if axis != "dataset" or catalog.dataset_entry(name) is None:
                spelled = {other.lower(): other for other in names}
                near = get_close_matches(name.lower(), spelled, n=1)
                meant = f"; if it is {spelled[near[0]]}, write so in [names.{axis}]" if near else ""
                notes.append(f"{axis} '{name}' is not in kshot's lists{meant}")
    return notes
