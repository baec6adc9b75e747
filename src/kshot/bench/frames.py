"""Other people's results: a data frame with one row a record becomes a table as joined records are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kshot.bench.joined import UNDEFINED, joined_schema
from kshot.bench.study import LARGEST
from kshot.data import catalog
from kshot.errors import InputError, KshotError, unknown
from kshot.files import safe_name
from kshot.methods import registry
from kshot.types import BALANCED, CELL, IMPORTED

if TYPE_CHECKING:
    import pyarrow as pa

NEEDED = ("dataset", "backbone", "tier", "shots", "seed", "method", "accuracy")


def frame_table(frame: Any, name: str) -> "pa.Table":
    """The rows of a frame of pandas, polars or arrow, or of a list of dicts; accuracies in per cent or shares of 1."""
    import pyarrow as pa

    rows = _rows(frame)
    if not rows:
        raise InputError("the frame has no rows.")
    for column in NEEDED:
        if column not in rows[0]:
            raise InputError(unknown("column", column, map(str, rows[0]), "Rename a column of the frame to it."))
    records: dict[tuple, dict[str, Any]] = {}
    percent = any(_accuracy(row) is not None and float(row["accuracy"]) > 1 for row in rows)
    for number, row in enumerate(rows):
        try:
            record = _record(row, safe_name("study", name), percent)
        except (KshotError, ValueError, TypeError) as error:
            raise InputError(f"row {number} of the frame: {error}") from None
        key = tuple(record[axis] for axis in (*CELL, "method"))
        if key in records:
            raise InputError(f"row {number} of the frame: a second record of {', '.join(map(str, key))}.")
        records[key] = record
    return pa.Table.from_pylist([records[key] for key in sorted(records)], schema=joined_schema())


def _rows(frame: Any) -> Sequence[Mapping[str, Any]]:
    for name in ("to_pylist", "to_dicts"):
        if hasattr(frame, name):
            return getattr(frame, name)()
    return frame.to_dict("records") if hasattr(frame, "to_dict") else list(frame)


def _accuracy(row: Mapping[str, Any]) -> float | None:
    value = row["accuracy"]
    return None if value is None or value != value else float(value)


def _record(row: Mapping[str, Any], study: str, percent: bool) -> dict[str, Any]:
    given: dict[str, Any] = {axis: safe_name(axis, row[axis]) for axis in ("dataset", "backbone", "tier")}
    for axis, least in (("shots", 1), ("seed", 0)):
        whole = float(row[axis])
        if not whole.is_integer() or not least <= whole <= LARGEST:
            raise InputError(f"{axis} is {row[axis]}; allowed are whole numbers from {least} up.")
        given[axis] = int(whole)
    accuracy, method = _accuracy(row), str(row["method"])
    if accuracy is not None and not 0 <= accuracy <= 100:
        raise InputError(f"accuracy is {accuracy:g}; allowed are 0 to 100, or 0 to 1.")
    entry = catalog.dataset_entry(given["dataset"])
    info = registry.info(method) if method in registry.BUILTIN else None
    return {
        **UNDEFINED,
        **given,
        "study": study,
        "method": method,
        "title": row.get("title") or (info.title if info else method),
        "sees": sorted(row.get("sees") or (info.sees if info else ("support", "text"))),
        "profile": row.get("profile") or BALANCED,
        "status": "undefined" if accuracy is None else "ok",
        "reason": "their table has no accuracy here" if accuracy is None else "",
        "accuracy": accuracy if accuracy is None or not percent else accuracy / 100,
        "n_test": row.get("n_test") or (entry.n_test if entry else None) or 0,
        "n_classes": entry.classes if entry else None,
        "simulated": False,
        "protocol": IMPORTED,
        "dtype": "float32",
    }
