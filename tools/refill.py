"""Write the numbers of kept records into the tables of docs pages: `python -m tools.refill`.

A comment `<!-- table KEY of FOLDER -->` before a table names the report's table and the records below docs/ that its
numbers come from. The page decides which rows and columns it shows. A table of docs/gauss-probe.md or docs/fold-gda.md
whose heading some tool prints (`tools.evidence`, `tools.leave_one_out`, `tools.calibration`) has the rows that it
prints; the page decides which.
"""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from kshot.results import load_records

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "atlas.md", DOCS / "beyond-accuracy.md")
PRINTED = (DOCS / "gauss-probe.md",)
TABLE = re.compile(r"^\|.*\n\|[-:| ]+\|\n(?:\|.*(?:\n|$))*", re.MULTILINE)
MARKED = re.compile(rf"(<!-- table (\w+) of (\S+) -->\n)({TABLE.pattern})", re.MULTILINE)

Cells = dict[tuple[str, str], str]


def read_table(markdown: str) -> Cells:
    """Cells of one table by (row, column)."""
    (_, *columns), _, *rows = map(_words, markdown.strip().splitlines())
    return {(row[0], column): cell for row in rows for column, cell in zip(columns, row[1:], strict=True)}


def read_tables(page: str) -> list[Cells]:
    """Every table of a page, in its order."""
    return [read_table(found[0]) for found in TABLE.finditer(page)]


def refilled(page: str) -> str:
    """Replace every cell of the marked tables by what the records give."""

    def refill(match: re.Match[str]) -> str:
        mark, key, folder, shown = match.groups()
        (made,) = read_tables(load_records(DOCS / folder).table(key).markdown())
        head, rule, *rows = shown.splitlines()
        columns = _words(head)[1:]
        lines = [" | ".join([name := _words(row)[0], *(made[name, column] for column in columns)]) for row in rows]
        return mark + "\n".join([head, rule, *(f"| {line} |" for line in lines)]) + "\n"

    return MARKED.sub(refill, page)


def replaced(page: str, printed: str) -> str:
    """Replace the rows of every table whose heading is among the printed ones."""
    made: dict[str, list[str]] = {}
    for table in TABLE.finditer(printed):
        head, _, *rows = table[0].splitlines()
        made.setdefault(head, []).extend(rows)

    def replace(match: re.Match[str]) -> str:
        head, rule, *rows = match[0].splitlines()
        if head not in made:
            return match[0]
        lines = {tuple(_words(line)[: _keys(head)]): line for line in made[head]}
        return "\n".join([head, rule, *(lines[tuple(_words(row)[: _keys(head)])] for row in rows)]) + "\n"

    return TABLE.sub(replace, page)


def _keys(head: str) -> int:
    """Cells that name a row: those before the first number of shots, else the first."""
    return next((place for place, word in enumerate(_words(head)) if word.startswith("K")), 1)


def printed_tables() -> str:
    """What the tools print, from what is kept."""
    from tools import calibration, evidence, leave_one_out

    with redirect_stdout(io.StringIO()) as out:
        evidence.print_tables(evidence.FOLDERS)
        leave_one_out.print_tables()
        calibration.print_tables(calibration.read_numbers())
    return out.getvalue()


def _words(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(refilled(page.read_text(encoding="utf-8")), encoding="utf-8")
    printed = printed_tables()
    for page in PRINTED:
        page.write_text(replaced(page.read_text(encoding="utf-8"), printed), encoding="utf-8")
