"""A report folder: the page, the tables in every format, the figures."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from kshot.files import write_text
from kshot.report.context import Context, MethodText
from kshot.report.embed import as_script, embedded
from kshot.report.notes import provenance
from kshot.report.renderings import markdown_text
from kshot.report.table import Table
from kshot.report.verdict import verdict
from kshot.stats.panel import Panel

# In this order, because each uses those before it.
SCRIPTS = ("theme", "data", "address", "crossed", "stats", "charts", "leaderboard", "verdict", "views")
SCRIPTS += ("explorer", "cells", "save", "main")
EVIDENCE = {
    "text": "the prompts of the classes",
    "support": "the labelled shots",
    "queries": "all test pictures at once, without their labels",
    "pool": "labelled pictures beside the shots",
    "few_shot_validation": "a few labelled pictures beside the shots, to choose by",
    "validation": "a labelled validation set",
    "test": "the test labels",
}
VERDICT_TITLE = "The verdict"


def write_report(
    panel: Panel, tables: Sequence[Table], folder: Path, context: Context, lead: Sequence[str] | None = None
) -> list[Path]:
    """Write report.html, report.md and tables/; `lead` replaces the verdict's sentences."""
    before = [*([context.unfinished] if context.unfinished else []), *(lead or [])]
    own = verdict(panel, context.own) if lead is None else []
    lines = [f"- {markdown_text(line)}" for line in (*before, *own)]
    markdown = [f"# kshot: {panel.origin.study}", "", *lines, "", *(table.markdown() for table in tables)]
    written = {
        folder / "report.html": page(panel, tables, context, before, own),
        folder / "report.md": "\n".join(markdown),
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
    template = Environment(autoescape=True).from_string(_part("page.html"))
    return template.render(
        style=style,
        script=script,
        style_hash=_source_hash(style),
        script_hash=_source_hash(script),
        verdict_title=VERDICT_TITLE,
        study=panel.origin.study,
        simulated=panel.origin.simulated,
        imported=panel.origin.imported,
        provenance=provenance(panel),
        lead=lead,
        verdict=own,
        tables=tables,
        cards=[_card(panel, context, method) for method in data["methods"]],
        data=as_script(data),
    )


def _card(panel: Panel, context: Context, method: Mapping[str, Any]) -> dict[str, Any]:
    """What a method is, what it looks at, what it chose and from what; `method` as the page carries it."""
    text = context.method_texts.get(method["key"], MethodText())
    sees = next(filter(None, panel.recorded(method["key"], "sees")), ())
    shown = {name.partition(".")[0] for name in (*method["fitted"], *method["words"])}
    chosen = {name: source for name, source in method["from"].items() if name in shown and source != "fixed"}
    return {
        "key": method["key"],
        "title": method["title"],
        "sees": "; ".join(words for evidence, words in EVIDENCE.items() if evidence in sees),
        "chosen": ", ".join(f"{name} by {EVIDENCE.get(source, source)}" for name, source in chosen.items()),
        "paper": text.paper,
        "about": text.about,
        "parameters": text.parameters,
        "python": text.python,
    }


def _part(name: str) -> str:
    return files("kshot.report").joinpath("page").joinpath(name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
