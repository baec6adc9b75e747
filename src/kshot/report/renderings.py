"""Show a table as Markdown, HTML, LaTeX, or on a terminal."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from kshot.errors import SHOW_CONTROLS

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from kshot.report.table import Table

# Characters that LaTeX reads as commands or does not have.
LATEX = {
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
    "–": r"\textendash{}",
}
# Shrinks what is wider than the text; the brace is closed behind the tabular.
NO_WIDER = r"\resizebox{\ifdim\width>\linewidth \linewidth\else\width\fi}{!}{%"
# Wider than any table, so that nothing is cut.
UNBOUNDED = 100_000


def _rows(table: "Table", escaped: Callable[[str], str], bold: str, underlined: str = "{}") -> Iterator[list[str]]:
    """The rows with every cell escaped, the best ones in bold and the second ones as LaTeX shows them."""
    marked = dict.fromkeys(table.second, underlined) | dict.fromkeys(table.best, bold)
    for i, row in enumerate(table.texts()):
        yield [marked.get((i, j), "{}").format(escaped(cell)) for j, cell in enumerate(row)]


def markdown(table: "Table") -> str:
    if not table.rows:
        return f"**{markdown_text(table.title)}**: {markdown_text(table.caption)}\n"
    head = ["| " + " | ".join(map(markdown_text, table.columns)) + " |", "|---|" + "---:|" * (len(table.columns) - 1)]
    body = ["| " + " | ".join(cells) + " |" for cells in _rows(table, markdown_text, "**{}**")]
    if table.rule is not None and table.rule < len(body):
        body.insert(table.rule, "| *" + table.below_rule + "* |" + " |" * (len(table.columns) - 1))
    return "\n".join([f"### {markdown_text(table.title)}", "", *head, *body, "", markdown_text(table.caption), ""])


def html(table: "Table", captioned: bool = True, marked: int | None = None) -> str:
    """`captioned=False`: the rows alone, for a page that has title and caption elsewhere; `marked`: a row to stand
    out."""
    if not table.rows:
        return f"<p><b>{escape(table.title)}</b>: {escape(table.caption)}</p>"
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in table.columns)
    rows = []
    for index, (name, *cells) in enumerate(_rows(table, escape, "<b>{}</b>")):
        mark = " class=reference" if table.rule is not None and index >= table.rule else ""
        mark = " class=marked" if index == marked else mark
        shown = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f"<tr{mark}><th scope=row>{name}</th>{shown}</tr>")
    caption = f"<caption><b>{escape(table.title)}</b> {escape(table.caption)}</caption>" if captioned else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def latex(table: "Table") -> str:
    """A booktabs table environment, no wider than the text."""
    if not table.rows:
        return f"% {table.title}: {table.caption}\n"
    body = [" & ".join(cells) + r" \\" for cells in _rows(table, _latex_text, r"\textbf{{{}}}", r"\underline{{{}}}")]
    if table.rule is not None and 0 < table.rule < len(body):
        body.insert(table.rule, r"\midrule")
    return "\n".join(
        [
            r"% \usepackage{booktabs, graphicx}",
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{\textbf{{{_latex_text(table.title)}.}} {_latex_text(table.caption)}}}",
            rf"\label{{tab:{table.key}}}",
            r"\smallskip",
            NO_WIDER,
            rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
            r"\toprule",
            " & ".join(_latex_heading(table, column) for column in range(len(table.columns))) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def plain(table: "Table") -> str:
    """As a terminal of unlimited width shows it."""
    from rich.console import Console

    console = Console(width=UNBOUNDED, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def terminal_parts(table: "Table", room: int) -> "Iterator[RichTable | str]":
    """One table where the window is wide enough, else several below each other that repeat the first column; then the
    caption, as wide as the widest of them."""
    if not table.rows:
        yield _rich_text(f"{table.title}: {table.caption}")
        return
    needed = [_least_width(table, column) for column in range(len(table.columns))]
    parts: list[list[int]] = [[0]]
    for column in range(1, len(table.columns)):
        wider = [*parts[-1], column]
        if len(parts[-1]) > 1 and sum(needed[j] for j in wider) + _frame(len(wider)) > room:
            parts.append([0])
        parts[-1].append(column)
    widest = 1
    for place, columns in enumerate(parts):
        wanted = [_width(table, column) for column in columns]
        least = [needed[column] for column in columns]
        widths = _narrowed(wanted, least, room - _frame(len(columns)))
        widest = max(widest, sum(widths) + _frame(len(columns)))
        part = _rich(table, columns, widths)
        part.title = _rich_text(table.title if not place else f"{table.title}, continued")
        yield part
    yield _rich_text(textwrap.fill(table.caption, widest, break_on_hyphens=False))


def _width(table: "Table", column: int) -> int:
    """Width of the longest line of a column."""
    return _longest(line for row in (table.columns, *table.texts()) for line in row[column].splitlines())


def _least_width(table: "Table", column: int) -> int:
    """Least width that keeps each word, and each figure with its interval, on one line."""
    cells = [table.columns[column], *(row[column] for row in table.rows)]
    return _longest(piece for cell in cells for piece in (cell.split() if isinstance(cell, str) else [str(cell)]))


def _longest(pieces: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, pieces), default=1)


def _frame(columns: int) -> int:
    """Width of the padding and of the lines between columns."""
    return 3 * columns + 1


def _narrowed(wanted: list[int], least: list[int], room: int) -> list[int]:
    """Shrink the columns to fit: wrap the widest between words first, and fold words only if that is not enough."""
    widths = list(wanted)
    while sum(widths) > room and max(widths) > 1:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        widest = spare.index(max(spare)) if max(spare) > 0 else widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _rich(table: "Table", columns: list[int], widths: list[int]) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable

    shown = RichTable(box=box.SIMPLE_HEAD)
    for index, width in zip(columns, widths, strict=True):
        justify = "left" if index == 0 else "right"
        shown.add_column(_rich_text(table.columns[index]), justify=justify, width=width, overflow="fold")
    for index, cells in enumerate(_rows(table, _rich_text, "[bold]{}[/bold]")):
        shown.add_row(*(cells[j] for j in columns), end_section=index + 1 == table.rule)
    return shown


def _rich_text(text: str) -> str:
    from rich.markup import escape

    return escape(text.translate(SHOW_CONTROLS))


def markdown_text(text: str) -> str:
    """Names stay names: no markup, no links, no broken columns."""
    return re.sub(r"([\\|<>*_`])", r"\\\1", text).replace("](", "]\\(").replace("\n", " ")


def _latex_heading(table: "Table", column: int) -> str:
    """Break a heading into lines that are no wider than the cells below it."""
    room = max(10, _longest(row[column] for row in table.texts()))
    lines = [_latex_text(line) for line in textwrap.wrap(table.columns[column], room, break_long_words=False)]
    stack = r"\shortstack[r]{\strut %s}" if column else r"\shortstack[l]{\strut %s}"
    return stack % r"\\".join(lines) if len(lines) > 1 else "".join(lines)


def _latex_text(text: str) -> str:
    # Two hyphens, as in `--shots`, would become a dash.
    return "".join(LATEX.get(character, character) for character in text).replace("--", "-{}-")
