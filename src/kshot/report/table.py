"""One table model and its renderings."""

import csv
import io
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

ABSENT = "–"
_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "×": r"$\times$",
    "Δ": r"$\Delta$",
    "λ": r"$\lambda$",
    "²": r"$^2$",
    "ρ": r"$\rho$",
    "–": "--",
}


@dataclass(frozen=True)
class Table:
    """Cells are finished text; rows from `rule` on stand below a line (reference points, means).

    `best` marks cells (row, column) to set in bold; `key` names the table's files.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    rule: int | None = None
    best: frozenset[tuple[int, int]] = frozenset()
    key: str = ""
    below_rule: str = "reference points"

    def rich(self) -> "RichTable":
        from rich import box
        from rich.markup import escape as plain
        from rich.table import Table as RichTable

        shown = RichTable(
            title=plain(self.title), caption=plain(self.caption), box=box.SIMPLE_HEAD, caption_justify="left"
        )
        for index, name in enumerate(self.columns):
            # On a narrow terminal cells wrap between words; a figure is never cut.
            words = [word for cell in (name, *(row[index] for row in self.rows)) for word in cell.split()]
            longest = max(map(len, words), default=1)
            shown.add_column(plain(name), justify="left" if index == 0 else "right", min_width=longest)
        for index, row in enumerate(self.rows):
            cells = (
                f"[bold]{plain(cell)}[/bold]" if (index, j) in self.best else plain(cell)
                for j, cell in enumerate(row)
            )
            shown.add_row(*cells, end_section=index + 1 == self.rule)
        return shown

    def markdown(self) -> str:
        def line(cells: tuple[str, ...], row: int = -1) -> str:
            marked = (
                f"**{_markdown_text(cell)}**" if (row, j) in self.best else _markdown_text(cell)
                for j, cell in enumerate(cells)
            )
            return "| " + " | ".join(marked) + " |"

        head = [line(self.columns), "|---|" + "---:|" * (len(self.columns) - 1)]
        body = [line(row, index) for index, row in enumerate(self.rows)]
        if self.rule is not None and self.rule < len(body):
            body.insert(self.rule, "| *" + self.below_rule + "* |" + " |" * (len(self.columns) - 1))
        return "\n".join(
            [f"### {_markdown_text(self.title)}", "", *head, *body, "", _markdown_text(self.caption), ""]
        )

    def html(self) -> str:
        head = "".join(f"<th scope=col>{escape(name)}</th>" for name in self.columns)
        rows = []
        for index, row in enumerate(self.rows):
            mark = " class=reference" if self.rule is not None and index >= self.rule else ""
            cells = "".join(
                f"<td><b>{escape(cell)}</b></td>" if (index, j) in self.best else f"<td>{escape(cell)}</td>"
                for j, cell in enumerate(row[1:], start=1)
            )
            rows.append(f"<tr{mark}><th scope=row>{escape(row[0])}</th>{cells}</tr>")
        return (
            f"<table><caption><b>{escape(self.title)}</b> {escape(self.caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )

    def latex(self) -> str:
        """A booktabs table environment."""

        def line(cells: tuple[str, ...], row: int = -1) -> str:
            marked = (
                rf"\textbf{{{_latex_text(cell)}}}" if (row, j) in self.best else _latex_text(cell)
                for j, cell in enumerate(cells)
            )
            return " & ".join(marked) + r" \\"

        body = [line(row, index) for index, row in enumerate(self.rows)]
        if self.rule is not None and 0 < self.rule < len(body):
            body.insert(self.rule, r"\midrule")
        return "\n".join(
            [
                r"\begin{table}[t]",
                r"\centering",
                rf"\caption{{\textbf{{{_latex_text(self.title)}.}} {_latex_text(self.caption)}}}",
                rf"\label{{tab:{self.key}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                r"\toprule",
                line(self.columns),
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def csv(self) -> str:
        """Rows as shown, minus signs as ASCII so that spreadsheets read numbers."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_csv_text(cell) for cell in row] for row in self.rows)
        return out.getvalue()


def _markdown_text(text: str) -> str:
    """Names stay names: no markup, no links, no broken columns."""
    return re.sub(r"([\\|<>*_`])", r"\\\1", text).replace("](", "]\\(").replace("\n", " ")


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv_text(text: str) -> str:
    """A cell that a spreadsheet would run as a formula is made text."""
    plain = text.replace("−", "-")
    return "'" + plain if plain[:1] in ("=", "@") or re.match(r"[+-](?![\d.])", plain) else plain
