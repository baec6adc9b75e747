"""What a study asked for, joined with the records that are there: the table of which all others are made."""

from typing import TYPE_CHECKING, Any

from kshot.bench.record import ANSWERS, CELL, schema, take
from kshot.bench.records import Records, SavedQuery

if TYPE_CHECKING:
    import pyarrow as pa

# Of a method that has no record in a cell; the facts are those of the cell's other records.
UNDEFINED: dict[str, Any] = {
    "status": "undefined",
    **dict.fromkeys(("key", "traceback"), ""),
    **dict.fromkeys(("selected", "selected_from", "recipe"), "{}"),
    **dict.fromkeys(("accuracy", "n_correct", "quantities"), None),
    **dict.fromkeys(("fit_seconds", "score_seconds"), 0.0),
    "hits": b"",
    "answered": False,
}


def joined_schema() -> "pa.Schema":
    """The columns of a row: study, method and title, then those of a record, without answers."""
    import pyarrow as pa

    named = [(name, pa.string()) for name in ("study", "method", "title")]
    return pa.schema([*named, *(field for field in schema() if field.name not in ANSWERS)])


def joined(saved: SavedQuery, records: Records) -> "pa.Table":
    """A row for every method and cell whose record is there or known to be undefined, sorted by cell and method."""
    import pyarrow as pa

    columns = [saved.table[name].to_pylist() for name in (*CELL, "method", "title", "key", "reason")]
    kept = records.table(saved.keys())
    place = {key: number for number, key in enumerate(kept["key"].to_pylist())}
    first: dict[tuple, int] = {}
    asked = sorted(zip(*columns, strict=True))
    for *cell, _, _, key, _ in asked:
        if key in place:
            first.setdefault(tuple(cell), place[key])
    rows = [row for row in asked if row[-2] in place or (row[-1] and row[:6] in first)]
    undefined = [row[-2] not in place for row in rows]
    numbers = (place.get(row[-2], first.get(row[:6], 0)) for row in rows)
    table = take(kept, numbers)
    if any(undefined):
        values = {name: table[name].to_pylist() for name in (*UNDEFINED, "sees", "reason")}
        for number, row in enumerate(rows):
            if undefined[number]:
                for name, value in {**UNDEFINED, "sees": saved.sees[row[6]], "reason": row[-1]}.items():
                    values[name][number] = value
        for name, column in values.items():
            index = table.schema.get_field_index(name)
            table = table.set_column(index, schema().field(name), pa.array(column, schema().field(name).type))
    names = {"study": [saved.study.name] * len(rows), "method": [r[6] for r in rows], "title": [r[7] for r in rows]}
    for name in names:
        table = table.append_column(pa.field(name, pa.string()), pa.array(names[name], pa.string()))
    return table.select(joined_schema().names).combine_chunks()
