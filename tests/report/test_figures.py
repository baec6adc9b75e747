"""Figures: every mark equals its table, names are in the picture, few lines to a panel."""

import itertools

import numpy as np
import pytest

from kshot.report.context import Context, Probed
from kshot.report.figures import FIGURES, OF_ONE_BACKBONE, plot, write_figures
from kshot.report.figures.comparisons import MOST_LINES
from kshot.report.figures.style import DATASET_COLOURS
from kshot.report.tables import make_table
from kshot.stats.panel import panel
from kshot.types import Sketch
from synthetic_records import TITLES, as_table, many_methods, synthetic_rows

pytestmark = pytest.mark.usefixtures("few_resamples")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def sketch():
    rng = np.random.default_rng(0)
    return Sketch(
        "alpha", "ViT-B-16", "dataset", ("$x", HOSTILE), rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), {}, 0, 2, 0.9
    )


@pytest.fixture(scope="module")
def records():
    """Two backbones and tiers, five draws, four datasets."""
    return panel(as_table(synthetic_rows(seeds=range(5))))


def table_of(records, key, **only):
    """{row name: {column: value}} of a table made of these cells alone."""
    for axis, name in only.items():
        records = records.where(records.cells[axis] == name)
    table = make_table(key, records)
    values = table.values()
    return {row: {column: values[column][i] for column in values} for i, row in enumerate(next(iter(values.values())))}


def lines_of(axis):
    """{label: (x, y)} of what is drawn, in the order of x."""
    return {line.get_label(): tuple(map(np.asarray, line.get_data())) for line in axis.get_lines()}


@pytest.mark.parametrize("name", ["accuracy_and_error", "risk_profiles"])
@pytest.mark.parametrize("backbone", ["ViT-B-16", "RN50"])
def test_a_choice_stands_where_its_records_put_it(records, name, backbone):
    """Not on the mean curve: the oracle is the best of every draw, so its star is on the peak or above."""
    figure = plot(records, Context(), name, backbone)
    panels = [axis for axis in figure.axes if axis.get_title()]
    assert panels
    for axis in panels:
        dataset = axis.get_title().split(",")[0]
        drawn = lines_of(axis)
        (star,), (loo,), (js,) = (drawn[label][1] for label in ("oracle", "LOO", "James–Stein"))
        row = table_of(records, "by_shots", dataset=dataset, backbone=backbone)["K=4"]
        assert loo - star == pytest.approx(row["loo_blend"])
        assert js - star == pytest.approx(row["james_stein_blend"])
        at = table_of(records, "leaderboard", dataset=dataset, backbone=backbone)
        assert star == pytest.approx(at["Oracle ratio"]["k4"])
        cells = records.where(
            (records.dataset == dataset)
            & (records.backbone == backbone)
            & (records.tier == "dataset")
            & (records.shots == 4)
        )
        for label, method in (("oracle", "oracle_lambda"), ("LOO", "loo_blend"), ("James–Stein", "js_blend")):
            assert drawn[label][0] == pytest.approx(cells.column(method, "ratio").mean())


@pytest.mark.parametrize("name", ["accuracy_and_error", "risk_profiles", "accuracy_by_shots"])
def test_the_picture_names_its_cells(records, name):
    figure = plot(records, Context(), name, "RN50")
    words = " ".join([figure.get_suptitle(), figure.get_supxlabel(), *(axis.get_title() for axis in figure.axes)])
    for part in ("RN50", "tier dataset", "5 draws"):
        assert part in words
    if name != "accuracy_by_shots":
        assert "K = 4" in words


@pytest.mark.parametrize("backbone", ["ViT-B-16", "RN50"])
def test_lines_by_shots_are_the_leaderboard_of_their_dataset(records, backbone):
    figure = plot(records, Context(), "accuracy_by_shots", backbone)
    drawn = {axis.get_title(): lines_of(axis) for axis in figure.axes if axis.get_visible()}
    assert set(drawn) == set(records.names("dataset"))
    for dataset, lines in drawn.items():
        assert set(lines) == set(TITLES.values()) - {"Logistic probe"}
        at = table_of(records, "leaderboard", dataset=dataset, backbone=backbone)
        for title, (shots, values) in lines.items():
            assert values == pytest.approx([at[title][f"k{k}"] for k in shots.astype(int)])
            assert len(shots) == (3 if title in ("LOO blend", "James–Stein blend") else 4)


def test_the_other_heads_are_the_leaderboards(records):
    many = panel(as_table(many_methods()))
    at, seen = table_of(many, "leaderboard"), set()
    for axis in plot(many, Context(), "other_heads").axes:
        for title, (shots, values) in lines_of(axis).items():
            assert values == pytest.approx([at[title][f"k{k}"] for k in shots.astype(int)])
            seen.add(title)
    assert len(seen) == 38 - 5, "all but those of accuracy_by_shots; the oracle ratio is in both"


def test_bars_are_means_of_the_leaderboard(records):
    late = records.where(records.shots >= 4)
    at = table_of(late, "leaderboard")
    (axis,) = plot(records, Context(), "bars").axes
    titles = [text.get_text() for text in axis.get_yticklabels()]
    assert {title: bar.get_width() for title, bar in zip(titles, axis.patches, strict=True)} == pytest.approx(
        {title: at[title]["mean"] for title in titles}
    )
    (line,) = axis.get_lines()
    assert line.get_xdata()[0] == pytest.approx(at["Oracle ratio"]["mean"])


def test_points_have_the_means_of_the_table_of_ratios(records):
    (axis,) = plot(records, Context(), "estimated_ratio").axes
    at = table_of(records, "ratio_tracking")
    points = {label.split(":")[0]: values for label, values in lines_of(axis).items() if "ρ" in label}
    assert set(points) == {"James–Stein blend", "LOO blend"}
    for title, (oracle, estimate) in points.items():
        both = np.isfinite(oracle) & np.isfinite(estimate)
        assert estimate[both].mean() == pytest.approx(at[title]["mean_lambda"])
        assert oracle[both].mean() == pytest.approx(at[title]["mean_oracle_lambda"])


def test_strata_and_probes_are_their_tables():
    rows = synthetic_rows(seeds=(0, 1))
    records = panel(as_table(rows))
    headroom = {(d, b): 0.1 * i for i, d in enumerate(("alpha", "beta", "gamma")) for b in ("ViT-B-16", "RN50")}
    cells = [(*stratum, "dataset", k, s, "balanced") for stratum in headroom for k in (2, 4) for s in (0, 1)]
    moved = {
        f"translation.a = {a:+.2f}": {cell: -abs(a) * (1 + i % 3) for i, cell in enumerate(cells)} for a in (-0.5, 0.5)
    }
    context = Context(headroom=headroom, probed=Probed(moved))
    table = make_table("strata", records, context).values()
    surplus = dict(zip(table["dataset_backbone"], table["clap"], strict=True))
    (axis,) = plot(records, context, "headroom").axes
    for dataset in ("alpha", "beta", "gamma"):
        x, y = lines_of(axis)[dataset]
        order = sorted(name for name in headroom if name[0] == dataset)
        assert x == pytest.approx([headroom[name] for name in order])
        assert y == pytest.approx([surplus[f"{dataset} · {backbone}"] for _, backbone in order])
    pooled = make_table("probes", records, context).values()
    means = dict(zip(pooled["quantity"], pooled["pooled"], strict=True))
    left, _ = plot(records, context, "offset_and_per_class").axes
    at = next(iter(left.get_lines())).get_data()
    assert list(at[0]) == [-0.5, 0.5]
    assert list(at[1]) == pytest.approx([means["prototypes moved by −½ of the offset, points"], means["moved by ½"]])


@pytest.mark.parametrize("rows", [many_methods(), synthetic_rows(datasets=("alpha",))], ids=["38 heads", "one dataset"])
def test_few_lines_to_a_panel_each_with_its_name_inside_the_picture(rows):
    for name in ("accuracy_by_shots", "other_heads"):
        figure = plot(panel(as_table(rows)), Context(), name)
        figure.draw_without_rendering()
        for axis in figure.axes:
            lines = lines_of(axis)
            assert len(lines) <= MOST_LINES
            looks = {(line.get_color(), line.get_marker()) for line in axis.get_lines()}
            assert len(looks) == len(lines)
            assert {text.get_text() for text in axis.texts} in (set(), set(lines))
            places = sorted(text.get_window_extent().y0 for text in axis.texts)
            assert all(later - earlier > 5 for earlier, later in itertools.pairwise(places))
        assert any(axis.texts for axis in figure.axes)
        edge = figure.bbox
        for text in (figure._supxlabel, figure._supylabel, *(t for axis in figure.axes for t in axis.texts)):
            box = text.get_window_extent()
            assert (box.x0 >= edge.x0, box.x1 <= edge.x1, box.y0 >= edge.y0, box.y1 <= edge.y1) == (True,) * 4


def test_an_own_head_is_in_the_first_figure(records):
    titles = lines_of(plot(records, Context(own=["logistic_probe"]), "accuracy_by_shots").axes[0])
    assert "Logistic probe" in titles
    assert len(titles) == MOST_LINES


def test_every_backbone_has_its_figures(records, tmp_path):
    names = {path.stem for path in write_figures(records, Context(), tmp_path)[0]}
    assert {"accuracy_by_shots", "accuracy_by_shots-RN50", "risk_profiles-RN50", "bars"} <= names
    assert not {"bars-RN50", "accuracy_by_shots-ViT-B-16"} & names


def test_all_figures_as_vector_and_picture(tmp_path):
    rows = [r | {"title": r["title"] + " $\\frac{1}"} for r in synthetic_rows(seeds=(0, 1))]
    headroom = {(d, b): 0.1 * i for i, d in enumerate(("alpha", "beta", "gamma")) for b in ("ViT-B-16", "RN50")}
    cells = [(*stratum, "dataset", k, s, "balanced") for stratum in headroom for k in (2, 4) for s in (0, 1)]
    moved = {f"translation.a = {a:+.2f}": dict.fromkeys(cells, -abs(a)) for a in (-0.5, -0.25, 0.25, 0.5)}
    context = Context(sketches=[sketch()], headroom=headroom, probed=Probed(moved))
    paths, missing = write_figures(panel(as_table(rows)), context, tmp_path)
    assert missing.keys() == {"text_strength"}
    again = {f"{name}-RN50" for name in OF_ONE_BACKBONE if name != "geometry"}
    assert {p.name for p in paths} == {
        f"{name}.{s}" for name in {*FIGURES, *again} - {*missing} for s in ("pdf", "svg", "png")
    }
    for path in paths:
        assert path.read_bytes()[:4] in (b"%PDF", b"<?xm", b"\x89PNG")


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
    assert sorted(axis.get_title() for axis in profiles.axes) == [f"{n}, 3 draws" for n in ("Aircraft", "DTD", "Pets")]
    assert (
        FIGURES["accuracy_and_error"](found, Context())
        .axes[0]
        .get_title()
        .startswith("Food101, ViT-B-16, tier dataset, K = 4")
    )
