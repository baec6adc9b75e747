"""What every probe returns: rows for a table."""

from dataclasses import dataclass
from typing import TypeAlias

Row: TypeAlias = dict[str, str | int | float]


@dataclass(frozen=True)
class Section:
    """One probe's table and the sentence that says how to read it."""

    title: str
    rows: list[Row]
    note: str
