"""Report folders: complete, small, self-contained, the same bytes from the same records."""

import json
import re

import numpy as np
import pytest

from kshot.report.context import Context
from kshot.report.figures import FIGURES, write_figures
from kshot.report.tables import TABLES, all_tables
from kshot.report.write import write_report
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
    assert not re.search(r"""(src|href)=["'](?!#)""", page)
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert {p.suffix for p in (tmp_path / "tables").iterdir()} == {".tex", ".csv"}
    assert len(list((tmp_path / "tables").iterdir())) == 2 * len(TABLES) == 46
    assert "Blending at its best" in (tmp_path / "report.md").read_text()


def test_hostile_names_cannot_leave_the_data_block(tmp_path):
    rows = [r | {"dataset": HOSTILE, "title": HOSTILE} for r in synthetic_rows(datasets=("alpha",))]
    page = written(rows, tmp_path)
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert embedded(page)["axes"]["dataset"]["names"] == [HOSTILE]


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


def test_curves_are_thinned_by_seed_when_the_study_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr("kshot.report.embed.CURVE_BYTES", 30_000)
    rows = synthetic_rows(datasets=("alpha", "beta"))
    data = embedded(written(rows, tmp_path))
    found = panel(as_table(rows))
    kept = data["curves"]["cells"]
    assert len(kept) < data["curves"]["total"]
    assert found.seed[kept].max() <= np.delete(found.seed, kept).min()
