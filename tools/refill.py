"""Write the numbers of kept records into the tables of docs pages: `python -m tools.refill`.

A comment `<!-- table KEY of FOLDER -->` before a table names the report's table and the records below docs/ that its
numbers come from. The page decides which rows and columns it shows.
"""

import re
from pathlib import Path

from kshot.results import load_records

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "atlas.md", DOCS / "beyond-accuracy.md")
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


def _words(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(refilled(page.read_text(encoding="utf-8")), encoding="utf-8")
