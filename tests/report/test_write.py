"""Report folders: complete, small, self-contained, the same bytes from the same records."""

import json
import re

import numpy as np
import pytest

from kshot.report.context import Context, Probed
from kshot.report.figures import FIGURES, write_figures
from kshot.report.figures.style import DATASET_COLOURS
from kshot.report.tables import TABLES, all_tables
from kshot.report.write import write_report
from kshot.stats.panel import panel
from kshot.types import Sketch
from synthetic_records import as_table, many_methods, synthetic_rows

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


def test_all_figures_as_vector_and_picture(tmp_path):
    rows = [r | {"title": r["title"] + " $\\frac{1}"} for r in synthetic_rows(seeds=(0, 1))]
    headroom = {(d, b): 0.1 * i for i, d in enumerate(("alpha", "beta", "gamma")) for b in ("ViT-B-16", "RN50")}
    cells = [(*stratum, "dataset", k, s, "balanced") for stratum in headroom for k in (2, 4) for s in (0, 1)]
    moved = {f"translation.a = {a:+.2f}": dict.fromkeys(cells, -abs(a)) for a in (-0.5, -0.25, 0.25, 0.5)}
    context = Context(sketches=[sketch()], headroom=headroom, probed=Probed(moved))
    paths, missing = write_figures(panel(as_table(rows)), context, tmp_path)
    assert missing == {}
    assert {p.name for p in paths} == {f"{name}.{suffix}" for name in FIGURES for suffix in ("pdf", "svg", "png")}
    for path in paths:
        assert path.read_bytes()[:4] in (b"%PDF", b"<?xm", b"\x89PNG")


def test_no_two_methods_look_alike_in_a_figure_of_lines():
    figure = FIGURES["accuracy_by_shots"](panel(as_table(many_methods())), Context())
    (legend,) = figure.legends
    assert len({text.get_text() for text in legend.get_texts()}) == 38
    for lines in (legend.get_lines(), *(axis.get_lines() for axis in figure.axes if axis.get_visible())):
        looks = {(one.get_color(), one.get_marker(), str(one._dash_pattern)) for one in lines}
        assert len(looks) == len(lines) == 38


def test_curves_are_thinned_by_seed_when_the_study_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr("kshot.report.embed.CURVE_BYTES", 30_000)
    rows = synthetic_rows(datasets=("alpha", "beta"))
    data = embedded(written(rows, tmp_path))
    found = panel(as_table(rows))
    kept = data["curves"]["cells"]
    assert len(kept) < data["curves"]["total"]
    assert found.seed[kept].max() <= np.delete(found.seed, kept).min()


def test_ten_datasets_have_ten_colours():
    assert len(set(DATASET_COLOURS)) == len(DATASET_COLOURS) == 10
    datasets = [f"set {number}" for number in range(10)]
    rows = synthetic_rows(datasets=tuple(datasets), backbones=("ViT-B-16",), tiers=("dataset",), shots=(2, 4))
    context = Context(headroom={(d, "ViT-B-16"): float(i) for i, d in enumerate(datasets)})
    figure = FIGURES["headroom"](panel(as_table(rows)), context)
    colours = {line.get_color() for line in figure.axes[0].lines if line.get_label() in datasets}
    assert len(colours) == 10


def test_bars_leave_out_combinations_that_end_early():
    """One dataset has no cell at K = 16: its high accuracies at K = 4 must not lift the bars."""
    rows = [
        row | ({"accuracy": 1.0} if row["dataset"] == "alpha" and row["accuracy"] is not None else {})
        for row in synthetic_rows(tiers=("dataset",), shots=(1, 2, 4, 16))
        if not (row["dataset"] == "alpha" and row["shots"] == 16)
    ]
    figure = FIGURES["bars"](panel(as_table(rows)), Context())
    longest = max(bar.get_width() for bar in figure.axes[0].patches)
    others = [
        100 * r["accuracy"] for r in rows if r["dataset"] != "alpha" and r["method"] == "clap" and r["shots"] >= 4
    ]
    assert longest == pytest.approx(np.mean(others))


def test_the_geometry_names_both_objectives_and_the_offsets_share():
    rows = synthetic_rows(seeds=(0,), methods=("oracle_lambda", "mse_oracle"))
    for row in rows:
        if row["method"] == "mse_oracle" and row["accuracy"] is not None:
            row["selected"] = '{"lambda": {"mean": 0.95}}'
    figure = FIGURES["geometry"](panel(as_table(rows)), Context(sketches=[sketch()]))
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert any(label.startswith("blend at oracle λ") for label in labels)
    assert "blend at least prototype error λ = 0.95" in labels
    assert any("% of the\nsquared distance" in label for label in labels)


def test_figures_show_the_papers_datasets_where_they_are_recorded():
    rows = synthetic_rows(datasets=("Aircraft", "Cars", "DTD", "Food101", "Pets"), shots=(2, 4))
    found = panel(as_table(rows))
    profiles = FIGURES["risk_profiles"](found, Context())
    assert sorted(axis.get_title() for axis in profiles.axes) == ["Aircraft", "DTD", "Pets"]
    assert FIGURES["accuracy_and_error"](found, Context()).axes[0].get_title().startswith("Food101, ViT-B-16, K = 4")
