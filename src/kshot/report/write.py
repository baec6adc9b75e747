"""A report folder: the page, the tables in every format; figures are drawn elsewhere and shown on the page."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from kshot.files import write_text
from kshot.report.context import Context, MethodText
from kshot.report.drawings import best_curves, interval_bars
from kshot.report.embed import as_script, embedded
from kshot.report.notes import lacking_shots, leak_words, provenance
from kshot.report.renderings import markdown_text
from kshot.report.slices import EVERY_DATASET, PageSlice, page_slices, primary
from kshot.report.table import Table
from kshot.report.tables import make_table
from kshot.report.verdict import caveats, findings, verdict
from kshot.stats.leaderboard import leaderboard
from kshot.stats.metrics import ACCURACY
from kshot.stats.panel import Panel

# In this order, because each uses those before it.
SCRIPTS = ("theme", "slices", "cell")
# Figures up to so many bytes are on the page; the others are named.
FIGURE_BYTES = 1_800_000
# What the page shows above its list of tables.
ABOVE = ("which_head", "leaderboard")
EVIDENCE = {
    "text": "the prompts of the classes",
    "support": "the labelled shots",
    "queries": "all test pictures at once, without their labels",
    "pool": "labelled pictures beside the shots",
    "few_shot_validation": "a few labelled pictures beside the shots, to choose by",
    "validation": "a labelled validation set",
    "test": "the test labels",
}


def write_report(
    panel: Panel,
    tables: Sequence[Table],
    folder: Path,
    context: Context,
    lead: Sequence[str] | None = None,
    figures: Sequence[Path] = (),
) -> list[Path]:
    """Write report.html, report.md and tables/; `lead` replaces the verdict, `figures` are files in the folder."""
    warnings = [*filter(None, [context.unfinished]), *leak_words(context.leaks)]
    words = [*warnings, *(verdict(panel, context.own) if lead is None else lead)]
    pictures = [path for path in figures if path.suffix == ".png"]
    drawn = [f"![{path.stem}]({path.relative_to(folder).as_posix()})" for path in pictures]
    lines = [f"- {markdown_text(line)}" for line in words]
    markdown = [f"# kshot: {panel.origin.study}", "", *lines, "", *(table.markdown() for table in tables), *drawn, ""]
    written = {
        folder / "report.html": page(panel, tables, context, [*warnings, *(lead or [])], pictures),
        folder / "report.md": "\n".join(markdown),
        **{folder / "tables" / f"{table.key}.tex": table.latex() for table in tables},
        **{folder / "tables" / f"{table.key}.csv": table.csv() for table in tables},
    }
    for path, text in written.items():
        write_text(path, text)
    return list(written)


def page(
    panel: Panel, tables: Sequence[Table], context: Context, lead: Sequence[str], figures: Sequence[Path] = ()
) -> str:
    """One self-contained page; its policy admits exactly the script and the style that are in it."""
    from jinja2 import Environment

    style = _part("shared.css") + _part("style.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_part(f"{name}.js") for name in SCRIPTS) + "\n})();"
    room, shown, named = FIGURE_BYTES, {}, []
    for path in figures:
        content = path.read_bytes()
        room -= len(content)
        if room > 0:
            shown[path.stem.replace("_", " ")] = _data_address("image/png", content)
        else:
            named.append(path.name)
    slices = page_slices(panel, context.measured)
    lacking = {" with ".join(pair): shots for pair, shots in lacking_shots(primary(panel)).items()}
    return (
        Environment(autoescape=True)
        .from_string(_part("page.html"))
        .render(
            study=panel.origin.study,
            simulated=panel.origin.simulated,
            imported=panel.origin.imported,
            provenance=provenance(panel),
            lead=lead,
            slices=[_shown(part, context) for part in slices],
            lacking=lacking,
            every_dataset=next((part for part in slices if part.key == EVERY_DATASET), None),
            tables=[table for table in tables if table.key not in ABOVE],
            saved=_saved,
            cards=[_card(panel, context, method) for method in panel.methods],
            figures=shown,
            named=named,
            data=as_script(embedded(panel)),
            style=style,
            script=script,
            style_hash=_source_hash(style),
            script_hash=_source_hash(script),
        )
    )


def _shown(part: PageSlice, context: Context) -> dict[str, Any]:
    """One slice as finished tables and drawings."""
    answer, board = (make_table(key, part.panel, context) for key in ABOVE)
    found = findings(part.panel, context.own) if part.panel.metric is ACCURACY else []
    return {
        "key": part.key,
        "group": part.group,
        "label": part.label,
        "answer": answer,
        "board": board,
        "marked": 0 if leaderboard(primary(part.panel)).ranked else None,
        "curves": best_curves(part.panel),
        "findings": list(zip(found, interval_bars(found), strict=True)) if found else [],
        "caveats": caveats(part.panel)[0],
    }


def _saved(table: Table) -> Iterator[tuple[str, str, str]]:
    """Names, file names and addresses under which a browser saves a table."""
    for name, suffix, kind, text in (
        ("CSV", "csv", "text/csv", table.csv()),
        ("LaTeX", "tex", "text/x-tex", table.latex()),
    ):
        yield name, f"{table.key}.{suffix}", _data_address(kind, text.encode())


def _data_address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _card(panel: Panel, context: Context, method: str) -> dict[str, Any]:
    """What a method is, what it looks at, and what it chose from what."""
    text: MethodText = context.method_texts.get(method, MethodText())
    sees = next(filter(None, panel.recorded(method, "sees")), ())
    chosen = _chosen(panel, method)
    return {
        "title": panel.titles[method],
        "sees": "; ".join(words for evidence, words in EVIDENCE.items() if evidence in sees),
        "chosen": ", ".join(f"{name} by {EVIDENCE.get(source, source)}" for name, source in chosen.items()),
        "paper": text.paper,
        "about": text.about,
        "parameters": text.parameters,
        "python": text.python,
    }


def _chosen(panel: Panel, method: str) -> Mapping[str, str]:
    origin: dict[str, str] = {}
    for text in dict.fromkeys(panel.recorded(method, "selected_from")):
        origin |= json.loads(text) if text else {}
    return {name: source for name, source in origin.items() if source != "fixed" and not name.endswith("accuracy")}


def _part(name: str) -> str:
    return files("kshot.report").joinpath("page").joinpath(name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
