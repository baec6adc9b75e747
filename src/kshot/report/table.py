"""One table model: cells are words or numbers until a rendering asks for text."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsInt, TypeAlias

import numpy as np
from jaxtyping import Float

from kshot.errors import need
from kshot.report import renderings
from kshot.stats.bootstrap import Estimate
from kshot.stats.metrics import Metric
from kshot.types import Array

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from rich.console import Console, ConsoleOptions, RenderResult

ABSENT = "–"
SECONDS = "seconds"
ENDS = ("low", "high", "n")
# Signs of titles as they are in plain names.
SIGNS = {"K≥": "from_k", "−": " minus ", "λ": "lambda", "Δ": "change ", "≥": " from ", "'": "", "++": "p", "+": " plus"}
FORMULA_STARTS = tuple("=+-@\t\r")
# A number, perhaps with its interval.
_NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?( ?%)?( \[[-+\d., ]+\])?")


@dataclass(frozen=True, slots=True)
class Number:
    """A mean and, where it was estimated over G datasets, its interval; `spec` says how it is written.

    `spec` is a format specification or `SECONDS`; `instead` is shown where there is no number, `mark` behind one.
    """

    mean: float | int
    spec: str = ".1f"
    low: float | None = None
    high: float | None = None
    n: int | None = None
    G: int | None = None
    instead: str = ABSENT
    mark: str = ""

    def __float__(self) -> float:
        return float(self.mean)

    def __str__(self) -> str:
        if self.mean != self.mean:
            return self.instead
        return self._written(self.mean) + self.ends + self.mark

    @property
    def is_estimate(self) -> bool:
        return self.G is not None

    @property
    def ends(self) -> str:
        """` [+0.87, +2.98]`; empty where it is no estimate."""
        if not self.is_estimate:
            return ""
        if self.low is None or self.high is None:
            return " [no interval]"
        return f" [{self._written(self.low)}, {self._written(self.high)}]"

    def _written(self, value: float | int) -> str:
        if self.spec == SECONDS:
            return seconds(value)
        # The minus of an exponent is part of how computers write it.
        return re.sub(r"(?<!e)-", "−", format(value, self.spec)).replace("%", " %")


TableCell: TypeAlias = str | Number


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers; rows from `rule` on stand below a line (reference points, means).

    `best` marks cells (row, column) to set in bold, `second` those to underline in LaTeX; `key` names the table's
    files; `picture` is an SVG that a page shows above it; `names` are those of columns in data frames, where the
    title does not make a good one. A table without rows is shown as one line: its title, and its
    caption as the reason.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: str
    rule: int | None = None
    best: Set[tuple[int, int]] = frozenset()
    second: Set[tuple[int, int]] = frozenset()
    key: str = ""
    below_rule: str = "reference points"
    picture: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_figures(self) -> bool:
        """Whether it holds any number but a count of zero."""
        numbers = [cell for row in self.rows for cell in row[1:] if isinstance(cell, Number)]
        return any(cell.mean == cell.mean and not (cell.spec.endswith("d") and cell.mean == 0) for cell in numbers)

    def texts(self) -> list[tuple[str, ...]]:
        """The rows as every rendering shows them."""
        return [tuple(map(str, row)) for row in self.rows]

    def values(self) -> dict[str, list[str | float | int | None]]:
        """Columns of plain values under plain names (`k4`, `mean`, `behind`).

        An estimate takes four of them: its own, and `low`, `high`, `n`; after the first estimate of a table these bear
        its name, too (`here_low`).
        """
        columns: dict[str, list[str | float | int | None]] = {}
        names = [self.names.get(title) or plain_name(title) for title in self.columns]
        estimates = 0
        for index, name in enumerate(names):
            cells = [row[index] for row in self.rows]
            columns[_unused(name, columns)] = [_plain(cell, "mean") for cell in cells]
            if any(isinstance(cell, Number) and cell.is_estimate for cell in cells):
                for part in ENDS:
                    alone = not estimates and part not in names
                    columns[_unused(part if alone else f"{name}_{part}", columns)] = [_plain(c, part) for c in cells]
                estimates += 1
        return columns

    def to_arrow(self) -> "pa.Table":
        import pyarrow as pa

        return pa.table(self.values())

    def to_pandas(self) -> "pd.DataFrame":
        return need("pandas", "frames").DataFrame(self.values())

    def to_polars(self) -> "pl.DataFrame":
        return need("polars", "frames").DataFrame(self.values())

    def csv(self) -> str:
        """Numbers in full, and nothing that a spreadsheet would run as a formula."""
        columns = self.values()
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(csv_text, columns))
        writer.writerows(map(csv_text, row) for row in zip(*columns.values(), strict=True))
        return out.getvalue()

    markdown, html, latex = renderings.markdown, renderings.html, renderings.latex
    _repr_html_ = renderings.html

    def __repr__(self) -> str:
        return renderings.plain(self)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        yield from renderings.terminal_parts(self, options.max_width)


def content(columns: Sequence[str], rows: Iterable[Sequence[TableCell]], notes: Iterable[str], **options: Any) -> Table:
    """Make a table whose caption is the notes; the registry adds title and key."""
    caption = " ".join(note for note in notes if note)
    return Table(options.pop("title", ""), tuple(columns), tuple(map(tuple, rows)), caption, **options)


def _plain(cell: TableCell, part: str) -> str | float | int | None:
    if isinstance(cell, str):
        return cell if part == "mean" else None
    value: Any = getattr(cell, part)
    return None if value is None or value != value else value


def _unused(name: str, used: dict[str, Any]) -> str:
    """Make a name unique: two columns of a page may share a title, two columns of a data frame may not."""
    return name if name not in used else _unused(f"{name}_again", used)


def plain_name(title: str) -> str:
    """`K=4` as `k4`, `accuracy (%)` as `accuracy`, `LOO blend` as `loo_blend`."""
    for sign, word in SIGNS.items():
        title = title.replace(sign, word)
    ascii_title = unicodedata.normalize("NFKD", re.sub(r"K\s*=\s*", "k", title)).lower()
    return re.sub(r"[^a-z0-9]+", "_", ascii_title).strip("_") or "column"


def csv_text(value: str | float | int | None) -> str | float | int:
    """A value of a CSV file; words that a spreadsheet would take for a formula are marked as words."""
    if not isinstance(value, str):
        return "" if value is None else value
    plain = value.replace("−", "-")
    return "'" + plain if plain[:1] in FORMULA_STARTS and not _NUMBER.fullmatch(plain) else plain


def number(value: float | None, digits: int = 1) -> Number:
    return Number(float("nan") if value is None else float(value), f".{digits}f")


def signed(value: float, digits: int = 2) -> Number:
    return Number(value, f"+.{digits}f")


def count(value: SupportsInt, spec: str = "d") -> Number:
    return Number(int(value), spec)


def interval(estimate: Estimate | None, digits: int = 2, sign: bool = True) -> Number:
    """`+1.92 [+0.87, +2.98]`, or the mean alone where there is no interval."""
    spec = f"{'+' if sign else ''}.{digits}f"
    if estimate is None or not estimate.n:
        return Number(float("nan"), spec, n=0, G=0)
    return Number(estimate.mean, spec, estimate.low, estimate.high, estimate.n, estimate.G)


def in_words(estimate: Estimate) -> str:
    """A mean with its interval for a sentence; with three to five datasets, `here` is the one on these alone."""
    here = f", here{interval(estimate.beside).ends}" if estimate.beside else ""
    return f"{interval(estimate)}{here}"


def seconds(value: float | int) -> str:
    """Three figures, in the unit that suits."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.2g} µs"


def metric_name(metric: Metric, capital: bool = False) -> str:
    """`accuracy (%)`; with a capital at the beginning of a sentence."""
    name = metric.title + (" (%)" if metric.scale == 100 else "")
    return name[0].upper() + name[1:] if capital else name


def metric_cells(metric: Metric, values: Iterable[float]) -> list[Number]:
    return [number(value, metric.digits) for value in values]


def best_cells(metric: Metric, columns: Iterable[Float[Array, " n"]], ties: bool = False) -> set[tuple[int, int]]:
    """(row, column) of the best known value of each column, the first is 1; with `ties`, of all equal to it."""
    found = set()
    for j, column in enumerate(columns, start=1):
        if np.isfinite(column).any():
            best = np.nanmin(column) if metric.less_is_better else np.nanmax(column)
            rows = np.flatnonzero(column == best)
            found |= {(int(i), j) for i in (rows if ties else rows[:1])}
    return found


def second_cells(metric: Metric, columns: Iterable[Float[Array, " n"]], ties: bool = False) -> set[tuple[int, int]]:
    """(row, column) of the value that comes next to the best of each column."""
    rest = [np.array(column, float) for column in columns]
    for i, j in best_cells(metric, rest, ties):
        rest[j - 1][i] = np.nan
    return best_cells(metric, rest, ties)
