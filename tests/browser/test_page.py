"""The page of a report in a real browser: it shows one slice of finished tables, and names stay names."""

import json
import re

import pytest

from axe import grave_findings
from browser_names import CLOSING, HOSTILE
from kshot.report.slices import page_slices
from kshot.report.tables import make_table
from kshot.stats.panel import panel
from synthetic_records import as_table

pytestmark = pytest.mark.ci
PHONE = {"viewport": {"width": 390, "height": 844}}


def shown_board(page):
    """The rows of the leaderboard that is visible, as words."""
    rows = page.locator(".board:visible tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def expected(records, key, table="leaderboard"):
    (part,) = (part for part in page_slices(panel(as_table(records)), {}) if part.key == key)
    return [list(row) for row in make_table(table, part.panel).texts()]


@pytest.mark.parametrize("key", ["all", "tier=photo", "backbone=RN50", f"dataset={HOSTILE}"])
def test_a_choice_of_cells_shows_the_tables_of_these_cells(page, records, key):
    page.select_option("#slice", key)
    assert shown_board(page) == expected(records, key)
    rows = page.locator("#answer [data-slice]:visible tbody tr").all()
    assert [row.locator("th, td").all_inner_texts() for row in rows] == expected(records, key, "which_head")
    assert page.locator("#findings [data-slice]:visible").count() == 1


def test_the_first_screen_answers(page):
    """The table of heads by K and the curves beside it lie above the fold, and the leader's row is marked."""
    table = page.locator("#answer [data-slice]:visible table").bounding_box()
    curves = page.locator("#answer [data-slice]:visible svg").bounding_box()
    assert table["y"] + table["height"] < 720
    assert curves["y"] + curves["height"] < 720
    assert curves["x"] > table["x"] + table["width"] - 1
    assert page.locator(".board:visible tr.marked").count() == 1
    assert shown_board(page)[0][0] == page.locator(".board:visible tr.marked th").inner_text()


def test_the_address_holds_the_view(browser, page, report):
    page.select_option("#slice", "tier=photo")
    page.locator("#cell summary").click()
    page.select_option("#pick-shots", "16")
    page.wait_for_function("location.hash.includes('cell=')")
    again = browser.new_page()
    again.goto(page.url)
    assert again.input_value("#slice") == "tier=photo"
    assert again.input_value("#pick-shots") == "16"
    assert again.locator("#cell details").get_attribute("open") is not None
    again.goto(report.as_uri() + "#cells=nothing&cell=nothing")
    assert again.input_value("#slice") == "all"
    again.close()


def test_sorting_by_click_and_keyboard(page):
    def column(index):
        return [row[index] for row in shown_board(page)[:-1]]

    heading = page.locator(".board:visible thead th").nth(3)
    heading.locator("button").click()
    values = [float(value) for value in column(3)]
    assert values == sorted(values, reverse=True)
    page.keyboard.press("Enter")
    assert [float(value) for value in column(3)] == sorted(values)
    assert heading.get_attribute("aria-sort") == "ascending"
    page.locator(".board:visible thead th button").first.click()
    assert column(0) == sorted(column(0), reverse=True)
    page.locator(".board:visible thead th button").nth(1).click()
    assert column(1)[-1] == "–"
    assert shown_board(page)[-1][0] == "Oracle ratio"


def test_one_cell_by_keyboard_and_choice(page, records):
    page.locator("#cell summary").click()
    for axis, name in (
        ("dataset", "beta"),
        ("backbone", "ViT-B-16"),
        ("tier", "dataset"),
        ("shots", "16"),
        ("seed", "0"),
    ):
        page.select_option(f"#pick-{axis}", name)
    page.focus("#lambda")
    page.keyboard.press("Home")
    assert page.inner_text("#lambda-readout").startswith("λ = 0.00")
    page.keyboard.press("ArrowRight")
    key = ("beta", "ViT-B-16", "dataset", 16, 0)
    rows = {
        row["method"]: row
        for row in records
        if tuple(row[name] for name in ("dataset", "backbone", "tier", "shots", "seed")) == key
    }
    oracle = rows["oracle_lambda"]
    curve = json.loads(oracle["selected"])["accuracy"]
    assert f"{100 * curve[1]:.1f} % on the test set" in page.inner_text("#lambda-readout")
    mark = page.locator('#profile [data-ratio="oracle_lambda"] title').text_content()
    ratio, accuracy = map(float, re.findall(r"\d+\.\d+", mark))
    assert ratio == pytest.approx(json.loads(oracle["selected"])["lambda"], abs=0.006)
    assert accuracy == pytest.approx(100 * oracle["accuracy"], abs=0.051)
    listed = {
        row.get_attribute("data-method"): row.locator("td").all_inner_texts()
        for row in page.locator("#cell-methods tbody tr").all()
    }
    assert listed.keys() == rows.keys()
    for method, (accuracy, *_) in listed.items():
        assert float(accuracy) == pytest.approx(100 * rows[method]["accuracy"], abs=0.006)
    assert "anchor_scale = 10 (from fixed)" in listed["clap"][-1]
    assert "penalties.max = 0.9 (from support)" in listed["clap"][-1]
    assert re.search(r"lambda = 0\.\d+ \(from test\)", listed["oracle_lambda"][-1])
    page.select_option("#pick-shots", "1")
    assert page.locator('[data-method="js_blend"] td').last.inner_text() == "undefined: not at this K"


def test_hostile_names_are_text(page):
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.get_by_text(HOSTILE).count() > 1
    assert page.get_by_text(CLOSING).count() > 1
    assert page.locator("i").count() == 0


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_a_phone_has_a_hint_where_columns_are_off_screen(page):
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("document.documentElement.scrollHeight") <= 6000
    for place in page.locator(".scroll:visible").all():
        wider = place.evaluate("one => one.scrollWidth > one.clientWidth + 1")
        hint = place.evaluate("one => getComputedStyle(one, '::before').content")
        assert ("more columns" in hint) == wider


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_dark_mode_follows_the_system_and_the_button(page):
    def background():
        return [int(x) for x in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))]

    before = background()
    page.click("#theme")
    assert (sum(before) > 380) != (sum(background()) > 380)
    page.click("#theme")
    assert background() == before


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE], indirect=True)
def test_nothing_grave_for_a_screen_reader(page):
    for fold in page.locator("details").all():
        fold.evaluate("one => { one.open = true; }")
    assert grave_findings(page) == []


def test_without_scripts_the_first_slice_and_all_tables_are_there(browser, report, records):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert shown_board(page) == expected(records, "all")
    page.locator("#table-headline summary").click()
    assert page.locator("#table-headline table").is_visible()
    context.close()


def test_a_table_is_saved_as_it_is_written(page, records):
    with page.expect_download() as saved:
        page.locator(".board:visible .tools a").first.click()
    assert saved.value.suggested_filename == "leaderboard.csv"
    assert saved.value.path().read_text() == make_table("leaderboard", panel(as_table(records))).csv()


def test_print_leaves_tables_and_drops_controls(page):
    page.emulate_media(media="print")
    assert page.locator("#filters").is_hidden()
    assert page.locator(".board:visible table").is_visible()
