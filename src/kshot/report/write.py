"""A report folder: the page, the tables in every format, the figures."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from kshot.files import write_text
from kshot.report.cards import cards
from kshot.report.context import Context
from kshot.report.embed import as_script, embedded
from kshot.report.focus import provenance
from kshot.report.renderings import markdown_text
from kshot.report.table import Table
from kshot.report.verdict import verdict
from kshot.stats.panel import Panel

SCRIPTS = (
    "theme",
    "data",
    "address",
    "stats",
    "charts",
    "leaderboard",
    "verdict",
    "views",
    "explorer",
    "cells",
    "save",
    "main",
)
VERDICT_TITLE = "The verdict"


def write_report(
    panel: Panel, tables: Sequence[Table], folder: Path, context: Context, lead: Sequence[str] | None = None
) -> list[Path]:
    """Write report.html, report.md and tables/; `lead` replaces the verdict's sentences."""
    before = [context.unfinished] if context.unfinished else []
    before += lead or []
    own = verdict(panel, context.own) if lead is None else []
    markdown = "\n".join(
        [
            f"# kshot: {panel.study}",
            "",
            *(f"- {markdown_text(line)}" for line in [*before, *own]),
            "",
            *(t.markdown() for t in tables),
        ]
    )
    written = {
        folder / "report.html": page(panel, tables, context, before, own),
        folder / "report.md": markdown,
        **{folder / "tables" / f"{table.key}.tex": table.latex() for table in tables},
        **{folder / "tables" / f"{table.key}.csv": table.csv() for table in tables},
    }
    for path, text in written.items():
        write_text(path, text)
    return list(written)


def page(panel: Panel, tables: Sequence[Table], context: Context, lead: Sequence[str], own: Sequence[str]) -> str:
    """One self-contained page; its policy admits exactly the script and the style that are in it."""
    from jinja2 import Environment

    data = embedded(panel, context)
    style = _part("shared.css") + _part("style.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_part(f"{name}.js") for name in SCRIPTS) + "\n})();"
    return (
        Environment(autoescape=True)
        .from_string(_part("page.html"))
        .render(
            study=panel.study,
            simulated=panel.simulated,
            provenance=provenance(panel),
            verdict_title=VERDICT_TITLE,
            lead=lead,
            verdict=own,
            tables=tables,
            cards=cards(panel, context, data["methods"]),
            data=as_script(data),
            style=style,
            style_hash=_source_hash(style),
            script=script,
            script_hash=_source_hash(script),
        )
    )


def _part(name: str) -> str:
    return files("kshot.report").joinpath("page").joinpath(name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
