"""What a reader does with the page: share a view, save what is shown, read of a method, use keyboard or phone."""

import csv
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from axe import grave_findings
from browser_names import HOSTILE
from kshot.report.context import Context, MethodText
from kshot.report.table import interval
from kshot.report.tables import all_tables
from kshot.report.write import write_report
from kshot.stats.leaderboard import paired
from kshot.stats.panel import panel
from synthetic_records import SEES, as_table, many_methods, synthetic_rows

pytestmark = pytest.mark.ci

SVG = "{http://www.w3.org/2000/svg}"


def address(page, wanted):
    """The address once it says what is wanted."""
    page.wait_for_function(f"location.hash.includes({wanted!r})")
    return page.evaluate("location.href")


def saved(page, button):
    with page.expect_download() as found:
        button.click()
    return found.value.suggested_filename, Path(found.value.path()).read_text()


def shown_state(page):
    """Everything that a link is to bring back."""
    return page.evaluate(
        """() => ({
            board: document.getElementById('board').innerText,
            bars: document.getElementById('bars').innerHTML,
            shots: document.getElementById('shots').innerHTML,
            profile: document.getElementById('profile').innerHTML,
            cells: document.getElementById('cell-list').innerText,
            detail: document.getElementById('cell-detail').innerText,
            open: [...document.querySelectorAll('details[open]')].map((one) => one.id),
            controls: [...document.querySelectorAll('select, input')]
                .map((one) => one.type === 'checkbox' ? one.checked : one.value),
        })"""
    )


def test_a_link_shows_the_same_view(page):
    first = shown_state(page)
    page.select_option("#filter-tier", "photo")
    page.select_option("#filter-baseline", "zero_shot")
    page.get_by_label("K=1", exact=True).uncheck()
    page.get_by_label(HOSTILE, exact=True).uncheck()
    page.click('#board [data-sort="K4"]')
    page.click('[data-legend="clap"]')
    page.select_option("#pick-dataset", "beta")
    page.focus("#lambda")
    page.keyboard.press("End")
    page.locator("#dataset-table tr", has_text="alpha").get_by_role("button").click()
    page.locator("#cell-list [data-open]").first.click()
    page.click("#method-clap summary")
    page.click("#table-cost summary")
    page.click('nav a[href="#tables"]')
    link = address(page, "at=tables")
    assert "table=cost" in link
    assert "method=clap" in link
    changed = shown_state(page)
    assert all(changed[part] != first[part] for part in changed)
    other = page.context.new_page()
    other.goto(link)
    assert shown_state(other) == changed
    assert other.evaluate("scrollY") > 500
    other.goto(link.partition("#")[0] + "#tier=nonsense&dataset=nobody&cell=x&baseline=zero_shot")
    # Another address of the same page loads nothing: the page hears of it a moment later.
    other.wait_for_function("() => document.querySelector('#filter-tier').value === 'dataset'")
    assert other.input_value("#filter-baseline") == "zero_shot"
    assert "No cell is left" in other.inner_text("#board-note")
    other.evaluate("location.hash = ''")
    other.wait_for_function("document.getElementById('filter-baseline').value === 'oracle_lambda'")
    assert shown_state(other) == first
    other.close()


def test_all_or_none(page):
    for what, boxes in (("Datasets", "#filter-dataset input"), ("Shots per class", "#filter-shots input")):
        page.get_by_role("button", name=f"{what}: none").click()
        assert not any(box.is_checked() for box in page.locator(boxes).all())
        assert "No cell is left" in page.inner_text("#board-note")
        page.get_by_role("button", name=f"{what}: all").click()
        assert all(box.is_checked() for box in page.locator(boxes).all())
    assert "4 datasets" in page.inner_text("#board-note")
    page.get_by_role("button", name="Lines: none").click()
    assert page.locator("#shots path.line").count() == 0
    page.get_by_role("button", name="Lines: all").click()
    assert page.locator("#shots > div").first.locator("path.line").count() == len(SEES)
    page.get_by_role("button", name="Tables: all").click()
    assert page.locator("#tables details:not([open])").count() == 0
    page.get_by_role("button", name="Tables: none").click()
    assert page.locator("#tables details[open]").count() == 0


def test_the_shown_table_is_saved_as_csv_and_latex(page, records):
    page.select_option("#filter-tier", "photo")
    name, text = saved(page, page.locator("#leaderboard [data-save=csv]"))
    assert name == "synthetic-leaderboard.csv"
    rows = list(csv.DictReader(text.splitlines()))
    clap = next(row for row in rows if row["Method"] == "CLAP")
    kept = panel(as_table([r for r in records if r["tier"] == "photo" and r["shots"] >= 2]))
    found = paired(kept, "clap", "oracle_lambda")
    column = "minus Oracle ratio, K≥2"
    for part, value in (("", found.mean), (" low", found.low), (" high", found.high)):
        assert float(clap[column + part]) == pytest.approx(value, abs=0.0051)
    name, text = saved(page, page.locator("#leaderboard [data-save=latex]"))
    assert name == "synthetic-leaderboard.tex"
    assert text.count("\\midrule") == 2, "below the head, above the reference points"
    body = text[text.index("\\toprule") : text.index("\\bottomrule")]
    assert len({line.count("&") for line in body.splitlines() if "&" in line}) == 1
    assert f"{interval(found)}".replace("−", "$-$") in body
    page.click("#table-datasets summary")
    _, text = saved(page, page.locator("#table-datasets [data-save=csv]"))
    assert HOSTILE in [row[0] for row in csv.reader(text.splitlines())]


def test_every_figure_is_saved_as_a_picture_that_stands_alone(page):
    page.select_option("#pick-dataset", "alpha")
    figures = page.locator("figure", has=page.locator("[data-save=svg]:visible")).all()
    assert len(figures) == 5
    for figure in figures:
        name, text = saved(page, figure.locator("[data-save=svg]"))
        root = ET.fromstring(text)
        assert name.endswith(f"-{figure.get_attribute('data-key')}.svg")
        assert root.find(f"{SVG}title").text == figure.locator("figcaption").inner_text()
        charts = [one for one in root.findall(f"{SVG}svg") if one.find(f".//{SVG}text") is not None]
        assert len(charts) == figure.locator("svg.chart").count()
        assert "class=" not in text
        assert "var(" not in text
        width, height = (float(root.get(side)) for side in ("width", "height"))
        assert root.find(f"{SVG}rect").get("fill").startswith("rgb")
        for chart in charts:
            assert float(chart.get("x")) + float(chart.get("width")) <= width
            assert float(chart.get("y")) + float(chart.get("height")) <= height
    shots = saved(page, page.locator("#figure-shots [data-save=svg]"))[1]
    assert "CLAP" in [one.text for one in ET.fromstring(shots).findall(f"{SVG}text")]


def test_one_tab_stop_for_a_chart_and_arrows_inside(page):
    page.select_option("#pick-dataset", "alpha")
    stops = page.evaluate(
        "[...document.querySelectorAll('svg.chart')].map((one) => [one, ...one.querySelectorAll('*')]"
        ".filter((part) => part.tabIndex >= 0).length)"
    )
    assert len(stops) == 8
    assert set(stops) == {1}
    chart = page.locator("#shots svg.chart").first
    chart.focus()
    said = lambda: page.evaluate("document.activeElement.getAttribute('aria-label')")  # noqa: E731
    page.keyboard.press("ArrowRight")
    start = said()
    assert page.inner_text("#tooltip") == start.replace(", ", "\n", 1)
    page.keyboard.press("ArrowRight")
    along = said()
    assert along != start
    assert along.partition(",")[0] == start.partition(",")[0]
    page.keyboard.press("ArrowDown")
    assert said().partition(",")[0] != along.partition(",")[0]
    page.keyboard.press("ArrowUp")
    assert said() == along
    page.keyboard.press("End")
    last = said()
    page.keyboard.press("ArrowRight")
    assert said() == last
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('svg.chart')"), "the next chart, not the next mark"
    page.keyboard.press("Escape")
    assert page.locator("#tooltip").is_hidden()


@pytest.fixture(scope="module")
def wide_report(tmp_path_factory):
    """As many methods as kshot has, with cards."""
    described = {"clap": MethodText("A paper, 2024", "What CLAP is.", {"epochs": "Passes."}, "kshot.CLAP")}
    context = Context(method_texts=described)
    found, folder = panel(as_table(many_methods())), tmp_path_factory.mktemp("wide")
    write_report(found, all_tables(found, context), folder, context)
    return folder / "report.html"


def test_no_two_methods_look_alike_in_any_chart(browser, wide_report):
    page = browser.new_page()
    page.goto(wide_report.as_uri())
    lines = page.locator("#shots > div").first.locator("path.line")
    inks = lines.evaluate_all("all => all.map(one => getComputedStyle(one).stroke)")
    assert len(set(inks)) == len(inks) == page.locator('[data-legend][aria-pressed="true"]').count() == 8
    page.get_by_role("button", name="Lines: all").click()
    looks = page.locator("[data-legend] svg").evaluate_all("all => all.map((one) => one.innerHTML)")
    assert len(set(looks)) == len(looks) == 38
    bars = page.locator("#bars svg > :is(circle, path)").evaluate_all(
        """all => all.map((one) => [getComputedStyle(one).fill, getComputedStyle(one).stroke, one.tagName,
            (one.getAttribute('d') ?? '').split(/[ML]/).slice(1).map((point) => point.trim().split(' '))
                .map(([x, y], _, [[left, top]]) => [(x - left).toFixed(1), (parseFloat(y) - top).toFixed(1)])
            ].join())"""
    )
    assert len(set(bars)) == len(bars) == page.locator("#bars rect.mark").count() == 38
    page.close()


def test_a_card_for_every_method(browser, wide_report):
    page = browser.new_page()
    page.goto(wide_report.as_uri())
    assert page.locator("#methods details").count() == 38
    page.click('#board a[href="#method-clap"]')
    card = page.locator("#method-clap")
    assert card.get_attribute("open") is not None
    words = card.inner_text()
    for said in ("A paper, 2024", "What CLAP is.", "epochs: Passes.", "the labelled shots", "help(kshot.CLAP)"):
        assert said in words
    assert re.search(r"penalties by the labelled shots", words)
    assert "anchor_scale" not in words, "it is fixed, not chosen"
    page.click("#method-oracle_lambda summary")
    assert "lambda by the test labels" in page.inner_text("#method-oracle_lambda")
    address(page, "at=method-clap")
    page.close()


def test_a_missing_table_is_one_line(page):
    lines = page.locator("#tables > p:not(.tools)").all_inner_texts()
    assert any(line.startswith("Precision arm") for line in lines)
    assert all("\n" not in line and len(line) < 250 for line in lines)
    assert page.locator("#tables table").count() + len(lines) == len(all_tables(panel(as_table(synthetic_rows()))))
    assert page.locator("#tables table tbody:empty").count() == 0


@pytest.mark.parametrize("page", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
def test_on_a_phone_names_stay_and_captions_wrap(page):
    page.get_by_role("button", name="Tables: all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for region, table in (("#leaderboard .scroll", "#board"), ("#table-headline .scroll", "#table-headline table")):
        page.locator(region).evaluate("one => { one.scrollLeft = 200; }")
        name = page.locator(f"{table} tbody th").first
        assert page.locator(region).evaluate("one => one.scrollLeft") > 50
        box, around = name.bounding_box(), page.locator(region).bounding_box()
        assert box["x"] == pytest.approx(around["x"], abs=1)
        assert box["width"] < 0.5 * 360
        hit = page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('th') !== null", _middle(page, name))
        assert hit, "the name is covered by figures"
    for caption in page.locator(".caption:visible, figcaption:visible").all():
        assert caption.bounding_box()["x"] + caption.bounding_box()["width"] <= 360


def _middle(page, element):
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_axe_finds_nothing_grave(page):
    for what in ("Tables", "Methods"):
        page.get_by_role("button", name=f"{what}: all").click()
    page.locator("#dataset-table tr", has_text="alpha").get_by_role("button").click()
    page.locator("#cell-list [data-open]").first.click()
    page.click('[data-legend="clap"]')
    assert grave_findings(page) == []
