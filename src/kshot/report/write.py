"""A report folder: the same tables as Markdown and as one page that opens from disk."""

from importlib.resources import files
from pathlib import Path

from kshot.files import write_text
from kshot.report.table import Table
from kshot.stats.panel import Panel


def write_report(panel: Panel, tables: list[Table], folder: Path) -> list[Path]:
    from jinja2 import Environment

    template = files("kshot.report").joinpath("page.html").read_text(encoding="utf-8")
    page = (
        Environment(autoescape=True)
        .from_string(template)
        .render(study=panel.study, simulated=panel.simulated, tables=[table.html() for table in tables])
    )
    markdown = f"# kshot: {panel.study}\n\n" + "\n".join(table.markdown() for table in tables)
    written = {folder / "report.md": markdown, folder / "report.html": page}
    for path, text in written.items():
        write_text(path, text)
    return list(written)
