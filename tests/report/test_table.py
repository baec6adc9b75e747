"""The renderings, with names that attack each of them."""

import csv
import io
from itertools import product

import pytest
from rich.console import Console

from kshot.report.table import Number, Table
from kshot.report.tables import all_tables, make_table
from kshot.stats.panel import panel
from synthetic_records import as_table, synthetic_rows

HOSTILE = r"<img src=x onerror=alert(1)> [bold]x[/bold] a|b {\input{/etc/passwd}} 100% & $x_1$ [c](javascript:d)"


def tables(rows):
    return {table.key: table for table in all_tables(panel(as_table(rows)))}


def made(key, rows):
    return make_table(key, panel(as_table(rows)))


def test_hostile_names_are_inert_everywhere():
    rows = [r | {"title": HOSTILE, "dataset": HOSTILE + r["dataset"]} for r in synthetic_rows(tiers=("dataset",))]
    found = tables(rows)
    for table in found.values():
        assert "<img" not in table.html()
        assert "<img" not in table.markdown().replace("\\<", "")
        assert r"\input{" not in table.latex()
        assert "](javascript" not in table.markdown()
    shown = found["headline"]
    assert r"a\|b" in shown.markdown()
    console = Console(width=400)
    with console.capture() as capture:
        console.print(shown)
    assert "[bold]x[/bold]" in capture.get()


def test_latex_has_as_many_cells_as_columns_and_a_rule():
    text = made("leaderboard", synthetic_rows()).latex()
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len({line.count(" & ") for line in body}) == 1
    assert text.count(r"\midrule") == 2
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def test_latex_marks_the_best_and_the_second_of_the_validation_free():
    table = made("leaderboard", synthetic_rows())
    rows = [line for line in table.latex().splitlines() if line.endswith(r"\\") and "&" in line][1:]
    for column in range(1, 6):
        shown = [row.removesuffix(r"\\").split(" & ")[column].strip() for row in rows]
        values = [float(row[column]) for row in table.rows[: table.rule]]
        first, second = sorted((v for v in values if v == v), reverse=True)[:2]
        assert shown[values.index(first)] == rf"\textbf{{{first:.1f}}}"
        assert shown[values.index(second)] == rf"\underline{{{second:.1f}}}"
        assert sum("underline" in text for text in shown) == sum("textbf" in text for text in shown) == 1
    assert "--" not in table.latex(), "hyphens would become dashes"


def test_one_dataset_says_what_its_interval_is_over():
    """From two draws there is none."""
    many, two = (synthetic_rows(datasets=("alpha",), seeds=seeds) for seeds in ((0, 1, 2), (0, 1)))
    found = {key: made(key, many) for key in ("leaderboard", "headline", "by_shots")}
    assert "[+" in found["headline"].markdown()
    assert "[no interval]" in str(made("headline", two).rows[0][1])
    assert found["leaderboard"].columns[-1] == "behind the leader on this dataset, K≥2"
    for table in found.values():
        for text in (table.latex(), table.markdown(), repr(table), table.html()):
            assert "over draws of shots and test pictures (crossed), on this dataset" in " ".join(text.split())
            assert "over datasets (10,000 resamples)" not in text


@pytest.mark.parametrize(
    ("absent", "key"),
    [
        ({"clap"}, "per_backbone"),
        ({"oracle_lambda"}, "headline"),
        ({"oracle_lambda"}, "ratio_tracking"),
        ({"clap", "lpp"}, "strata"),
        ({"zero_shot", "loo_blend"}, "prior_upgrade"),
    ],
)
def test_missing_methods_are_named(absent, key):
    rows = [r for r in synthetic_rows() if r["method"] not in absent]
    caption = made(key, rows).caption
    for method in absent:
        assert method in caption


def test_one_tier_only_says_why_there_is_no_upgrade():
    caption = made("prior_upgrade", synthetic_rows(tiers=("dataset",))).caption
    assert "needs tier photo and another; these records hold dataset" in caption


def estimates():
    rows = (
        ("one", Number(1.25, "+.2f", 0.5, 2.0, 12, 3), Number(7, "d")),
        ("two", Number(float("nan"), "+.2f", n=0, G=0), Number(8, "d")),
        ("lead", Number(float("nan"), G=3, instead="leader"), Number(9, "d")),
    )
    return Table("t", ("method", "gap", "n"), rows, "c")


def test_an_estimate_has_columns_of_its_own_in_csv_and_frames():
    read = list(csv.DictReader(io.StringIO(estimates().csv())))
    assert list(read[0]) == ["method", "gap", "low", "high", "gap_n", "n"]
    assert [float(read[0][name]) for name in ("gap", "low", "high", "gap_n")] == [1.25, 0.5, 2.0, 12]
    assert [read[i]["gap"] for i in (1, 2)] == ["", ""]
    for frame in (estimates().to_pandas(), estimates().to_polars(), estimates().to_arrow()):
        assert [float(value) for value in frame["n"].to_numpy()] == [7, 8, 9]
    assert estimates().to_pandas()["gap"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("K=4", "k4"),
        ("K≥2 pooled", "from_k2_pooled"),
        ("accuracy (%)", "accuracy"),
        ("LP++", "lpp"),
        ("James–Stein blend", "james_stein_blend"),
        ("Δ oracle λ", "change_oracle_lambda"),
        ("…!", "column"),
    ],
)
def test_frames_have_plain_names(title, name):
    assert list(Table("t", (title,), (("x",),), "c").values()) == [name]


def test_every_rendering_shows_the_same_cells():
    for text in (estimates().markdown(), estimates().html(), estimates().latex(), repr(estimates())):
        assert "+1.25 [+0.50, +2.00]" in text
        assert "leader" in text


def test_no_window_is_too_narrow_for_a_column():
    found = tables(synthetic_rows(datasets=("a-rather-long-name", "beta", "gamma", "delta"))).values()
    for width, table in product((40, 80, 200), found):
        console = Console(width=width)
        with console.capture() as capture:
            console.print(table)
        lines = capture.get().splitlines()
        shown = set("\n".join(lines).split())
        assert all(len(line) <= width for line in lines)
        words = {w for row in (table.columns, *table.texts()) for cell in row for w in cell.split()}
        assert words <= shown, words - shown
