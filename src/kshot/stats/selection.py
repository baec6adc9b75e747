"""Part of the records, chosen by what they are called."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kshot.errors import StudyError, unknown

if TYPE_CHECKING:
    import pyarrow as pa

AXES = ("dataset", "backbone", "tier", "shots", "profile", "method")


def select(table: "pa.Table", wanted: Mapping[str, Sequence[str | int]]) -> "pa.Table":
    """The rows that bear one of the wanted names on every axis; an empty list asks for nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = table
    for axis, names in wanted.items():
        if axis not in AXES:
            raise StudyError(unknown("axis", axis, AXES, "Choose records by one of these."))
        if not names:
            continue
        known = pc.call_function("unique", [whole[axis]]).to_pylist()
        for name in names:
            if name not in known:
                raise StudyError(unknown(axis, str(name), map(str, known), "These are in the records."))
        kept = pc.call_function("is_in", [table[axis]], pc.SetLookupOptions(pa.array(list(names))))
        table = table.filter(kept)
    if not table.num_rows:
        raise StudyError(f"no record has all of this: {described(wanted)}.")
    return table


def described(wanted: Mapping[str, Sequence[str | int]]) -> str:
    """`dataset cifar10; shots 2, 4`; nothing where nothing is asked for."""
    return "; ".join(f"{axis} {', '.join(map(str, names))}" for axis, names in wanted.items() if names)
