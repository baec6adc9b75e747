"""Report folders: complete, small, self-contained, the same bytes from the same records."""

import json
import re
from html import unescape

import numpy as np
import pytest

from kshot.report.context import Context
from kshot.report.drawings import best_curves, interval_bars
from kshot.report.figures import FIGURES, write_figures
from kshot.report.slices import page_slices, primary
from kshot.report.tables import TABLES, all_tables, make_table
from kshot.report.verdict import findings
from kshot.report.write import write_report
from kshot.stats.leaderboard import leaderboard
from kshot.stats.panel import panel
from kshot.types import Sketch
from synthetic_records import as_table, synthetic_rows

pytestmark = pytest.mark.usefixtures("few_resamples")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def sketch():
    rng = np.random.default_rng(0)
    return Sketch(
        "alpha", "ViT-B-16", "dataset", ("$x", HOSTILE), rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), {}, 0, 2, 0.9
    )


def written(rows, folder, context=None):
    found = panel(as_table(rows))
    context = context or Context()
    write_report(found, all_tables(found, context), folder, context)
    return (folder / "report.html").read_text(encoding="utf-8")


def embedded(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def test_the_page_is_whole_and_asks_for_nothing(tmp_path):
    page = written(synthetic_rows(), tmp_path)
    assert len(page) < 5_000_000
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page)
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert {p.suffix for p in (tmp_path / "tables").iterdir()} == {".tex", ".csv"}
    assert len(list((tmp_path / "tables").iterdir())) == 2 * len(TABLES)
    assert "Use CLAP" in (tmp_path / "report.md").read_text()


def test_hostile_names_cannot_leave_the_data_block(tmp_path):
    rows = [r | {"dataset": HOSTILE, "title": HOSTILE} for r in synthetic_rows(datasets=("alpha",))]
    page = written(rows, tmp_path)
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert {cell["names"][0] for cell in embedded(page)["cells"]} == {HOSTILE}


def test_same_records_same_bytes(tmp_path, monkeypatch):
    for name in set(FIGURES) - {"geometry", "bars"}:
        monkeypatch.delitem(FIGURES, name)
    context = Context(sketches=[sketch()])
    for name in ("one", "two"):
        rows = synthetic_rows(datasets=("alpha", "beta"), shots=(2, 4), seeds=(0,))
        written(rows, tmp_path / name, context)
        write_figures(panel(as_table(rows)), context, tmp_path / name / "figures")
    first = sorted(p for p in (tmp_path / "one").rglob("*") if p.is_file())
    assert first
    for path in first:
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


def test_cells_are_thinned_by_seed_when_the_study_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr("kshot.report.embed.CELL_BYTES", 100_000)
    rows = synthetic_rows(datasets=("alpha", "beta"))
    data = embedded(written(rows, tmp_path))
    found = panel(as_table(rows))
    kept = {tuple(cell["names"]) for cell in data["cells"]}
    assert 0 < len(kept) < data["total"] == len(found)
    left = [key for key in found.cell_keys() if tuple(map(str, key)) not in kept]
    assert max(int(names[4]) for names in kept) <= min(key[4] for key in left)


def cells_of(html):
    """Rows of a table on the page as lists of words."""
    plain = [re.sub(r"<[^>]+>", "\t", row).split("\t") for row in re.findall(r"<tr.*?</tr>", html, re.S)]
    return [[unescape(word) for word in row if word] for row in plain]


def test_every_slice_of_the_page_is_its_tables(tmp_path):
    """Nothing is computed in the browser: a slice holds what Python makes of its cells alone."""
    rows = [row for row in synthetic_rows() if (row["dataset"], row["shots"]) != ("beta", 16)]
    found = panel(as_table(rows))
    page = written(rows, tmp_path)
    parts = {part.key: part for part in page_slices(found, {})}
    assert list(parts)[:2] == ["all", "every-dataset"]
    assert {"dataset=beta", "tier=photo", "backbone=RN50"} <= set(parts)
    assert set(parts["every-dataset"].panel.shots) == {1, 2, 4}
    for key, part in parts.items():
        shown = re.findall(rf'<div data-slice="{key}"[^>]*>(.*?)(?=<div data-slice|</section>)', page, re.S)
        assert len(shown) == 3
        for html, name in ((shown[0], "which_head"), (shown[2], "leaderboard")):
            table = make_table(name, part.panel)
            assert cells_of(html)[1 : len(table.rows) + 1] == [list(filter(None, row)) for row in table.texts()]
        sentences = [unescape(words) for words in re.findall(r"<li><span>(.*?)</span>", shown[1])]
        assert sentences == [finding.sentence for finding in findings(part.panel)]
    assert 'data-show="every-dataset"' in page
    assert "beta with RN50 (K = 16)" in page


def test_curves_and_bars_are_the_numbers_of_their_tables():
    found = panel(as_table(synthetic_rows()))
    board = leaderboard(primary(found))
    drawn = {unescape(words) for words in re.findall(r"<title>(.*?)</title>", best_curves(found))}
    placings = [*board.ranked[:5], *board.reference_points]
    assert drawn == {
        f"{found.titles[p.method]}, K={k}: {value:.1f}"
        for p in placings
        for k, value in p.by_shots.items()
        if value == value
    }
    made = findings(found)
    ends = [f.estimate.low for f in made] + [f.estimate.high for f in made] + [0.0]
    for finding, bar in zip(made, interval_bars(made), strict=True):
        zero, low, high = (float(x) for x in re.findall(r"M([\d.]+) 0V22.*M([\d.]+) 11H([\d.]+)", bar)[0])
        scale = (zero - 8) / -min(ends)
        assert (low - zero, high - zero) == pytest.approx(
            (scale * finding.estimate.low, scale * finding.estimate.high), abs=0.11
        )


def test_figures_stand_on_the_page_and_in_markdown(tmp_path):
    found = panel(as_table(synthetic_rows(seeds=(0,))))
    figures, _ = write_figures(found, Context(), tmp_path / "figures")
    write_report(found, all_tables(found), tmp_path, Context(), None, figures)
    page, markdown = ((tmp_path / name).read_text() for name in ("report.html", "report.md"))
    drawn = [path for path in figures if path.suffix == ".png"]
    assert page.count('src="data:image/png;base64,') == len(drawn) >= 5
    assert all(f"(figures/{path.name})" in markdown for path in drawn)
