"""One table model: cells are words or numbers until a rendering asks for text."""

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from kshot.report import renderings
from kshot.report.numbers import Number

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from rich.console import Console, ConsoleOptions, RenderResult

TableCell: TypeAlias = str | Number
PARTS = ("mean", "low", "high", "n")

FORMULA_STARTS = tuple("=+-@\t\r")
# A number, perhaps with its interval.
_NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?( ?%)?( \[[-+\d., ]+\])?")


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers; rows from `rule` on stand below a line (reference points, means).

    `best` marks cells (row, column) to set in bold; `key` names the table's files. A table without rows is shown as
    one line: its title, and its caption as the reason.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: str
    rule: int | None = None
    best: frozenset[tuple[int, int]] = frozenset()
    key: str = ""
    below_rule: str = "reference points"

    @property
    def has_figures(self) -> bool:
        """Whether anything but a count of nothing is known in it; a table without columns is one line with a reason."""
        numbers = [cell for row in self.rows for cell in row[1:] if isinstance(cell, Number)]
        return not self.columns or any(
            cell.mean == cell.mean and not (cell.is_count and cell.mean == 0) for cell in numbers
        )

    def texts(self) -> list[tuple[str, ...]]:
        """The rows as every rendering shows them."""
        return [tuple(map(str, row)) for row in self.rows]

    def values(self) -> dict[str, list[str | float | int | None]]:
        """Columns of plain values; an estimate takes four of them: mean, low, high and n."""
        columns: dict[str, list[str | float | int | None]] = {}
        for index, name in enumerate(self.columns):
            cells = [row[index] for row in self.rows]
            if any(isinstance(cell, Number) and cell.is_estimate for cell in cells):
                for part in PARTS:
                    columns[_unused(f"{name} {part}", columns)] = [_plain(cell, part) for cell in cells]
            else:
                columns[_unused(name, columns)] = [_plain(cell, "mean") for cell in cells]
        return columns

    def to_arrow(self) -> "pa.Table":
        import pyarrow as pa

        return pa.table(self.values())

    def to_pandas(self) -> "pd.DataFrame":
        from kshot.errors import need

        return need("pandas", "frames").DataFrame(self.values())

    def to_polars(self) -> "pl.DataFrame":
        from kshot.errors import need

        return need("polars", "frames").DataFrame(self.values())

    def csv(self) -> str:
        """Numbers in full, and nothing that a spreadsheet would run as a formula."""
        columns = self.values()
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(csv_text, columns))
        writer.writerows(map(csv_text, row) for row in zip(*columns.values(), strict=True))
        return out.getvalue()

    def markdown(self) -> str:
        return renderings.markdown(self)

    def html(self, captioned: bool = True) -> str:
        return renderings.html(self, captioned)

    def latex(self) -> str:
        return renderings.latex(self)

    def _repr_html_(self) -> str:
        return self.html()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        yield from renderings.terminal_parts(self, options.max_width)

    def __repr__(self) -> str:
        return renderings.plain(self)


def absent_table(key: str, title: str, why: str) -> Table:
    """What stands where these records cannot fill a table."""
    return Table(title, (), (), why, key=key)


def _plain(cell: TableCell, part: str) -> str | float | int | None:
    if isinstance(cell, str):
        return cell if part == "mean" else None
    value: Any = getattr(cell, part)
    return None if value is None or value != value else value


def _unused(name: str, used: dict[str, Any]) -> str:
    """Two columns may bear one title on a page, but not in a frame."""
    return name if name not in used else _unused(f"{name} (again)", used)


def csv_text(value: str | float | int | None) -> str | float | int:
    """A value of a CSV file; words that a spreadsheet would take for a formula are marked as words."""
    if not isinstance(value, str):
        return "" if value is None else value
    plain = value.replace("−", "-")
    return "'" + plain if plain[:1] in FORMULA_STARTS and not _NUMBER.fullmatch(plain) else plain
