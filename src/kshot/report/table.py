"""One table model and its renderings."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from kshot.stats.bootstrap import Estimate

if TYPE_CHECKING:
    from rich.table import Table as RichTable

ABSENT = "–"


@dataclass(frozen=True)
class Table:
    """Cells are finished text; rows after `rule` stand below a line (reference points)."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    rule: int | None = None

    def rich(self) -> "RichTable":
        from rich import box
        from rich.markup import escape as plain
        from rich.table import Table as RichTable

        shown = RichTable(
            title=plain(self.title), caption=plain(self.caption), box=box.SIMPLE_HEAD, caption_justify="left"
        )
        for index, name in enumerate(self.columns):
            shown.add_column(plain(name), justify="left" if index == 0 else "right", no_wrap=True)
        for index, row in enumerate(self.rows):
            shown.add_row(*map(plain, row), end_section=index + 1 == self.rule)
        return shown

    def markdown(self) -> str:
        def line(cells: tuple[str, ...]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        head = [line(self.columns), "|---|" + "---:|" * (len(self.columns) - 1)]
        body = [line(row) for row in self.rows]
        if self.rule is not None and self.rule < len(body):
            body.insert(self.rule, line(("*reference points*", *[""] * (len(self.columns) - 1))))
        return "\n".join([f"### {self.title}", "", *head, *body, "", self.caption, ""])

    def html(self) -> str:
        head = "".join(f"<th scope=col>{escape(name)}</th>" for name in self.columns)
        rows = []
        for index, row in enumerate(self.rows):
            mark = " class=reference" if self.rule is not None and index >= self.rule else ""
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
            rows.append(f"<tr{mark}><th scope=row>{escape(row[0])}</th>{cells}</tr>")
        return (
            f"<table><caption><b>{escape(self.title)}</b> {escape(self.caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )


def number(value: float | None, digits: int = 1) -> str:
    return ABSENT if value is None or value != value else f"{value:.{digits}f}"


def signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def interval(estimate: Estimate | None) -> str:
    """`+1.92 [+0.87, +2.98]`, or the mean alone where there is no interval."""
    if estimate is None or not estimate.n:
        return ABSENT
    if estimate.low is None or estimate.high is None:
        return f"{signed(estimate.mean)} [no interval]"
    return f"{signed(estimate.mean)} [{signed(estimate.low)}, {signed(estimate.high)}]"
