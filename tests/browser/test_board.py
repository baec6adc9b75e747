"""The board in a browser: an audit of its pages, and 500 entries in less than two seconds."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from axe import grave_findings
from board_yard import FEATURES, honest_yard
from kshot.bench.records import load_table
from kshot.board.site import board_page, build
from kshot.report.context import Context, EntryMark
from kshot.stats.metrics import METRICS
from kshot.stats.panel import panel

OPEN = Path(__file__).resolve().parents[2] / "docs" / "open" / "records"
pytestmark = pytest.mark.ci
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    yard = honest_yard(tmp_path_factory.mktemp("yard"))
    return build(yard / "kept", yard / "submissions", yard / "verdicts", yard / "site", FEATURES).page


def opened(browser, page, **options):
    context = browser.new_context(**options)
    tab = context.new_page()
    tab.trouble = []
    tab.on("console", lambda message: tab.trouble.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.trouble.append(str(error)))
    tab.on("request", lambda sent: None if sent.url.startswith("file:") else tab.trouble.append(sent.url))
    tab.goto(page.as_uri())
    return tab


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("place", ["index.html", "entries/pair/index.html"])
def test_pages_pass_the_audit_and_fit_the_screen(browser, board, options, place):
    tab = opened(browser, board.parent / place, **options)
    assert grave_findings(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.trouble == []


def test_an_entry_is_told_apart_and_leads_to_its_page(browser, board):
    tab = opened(browser, board)
    row = tab.locator("#board tr[data-method=pair]")
    assert "declared" in row.inner_text()
    assert "kshot" in tab.locator("#board tr[data-method=clap]").inner_text()
    row.locator("a").click()
    assert "two cores" in tab.locator("#about").inner_text()
    tab.get_by_text("All entries").click()
    assert tab.locator("#board").is_visible()


def test_filters_by_regime_choose_cells(browser, board):
    tab = opened(browser, board)
    before = tab.locator("#board-note").inner_text()
    tab.locator("#filter-text").select_option("strong, from 50 %")
    assert before.startswith("8 cells in 2 datasets")
    assert tab.locator("#board-note").inner_text().startswith("4 cells in 1 dataset")
    assert "text=strong" in tab.evaluate("new Promise((done) => setTimeout(() => done(location.hash), 300))")
    assert tab.locator("#filter-classes").is_hidden()


def test_five_hundred_entries_load_in_two_seconds(browser, tmp_path):
    own = load_table(OPEN)
    clap = own.filter([name == "clap" for name in own["method"].to_pylist()])
    rng, tables = np.random.default_rng(0), [own]
    for number in range(500):
        values = np.clip(clap["accuracy"].to_numpy() + rng.normal(0, 0.02, len(clap)) + rng.normal(0, 0.02), 0, 1)
        entry = clap
        for name, column in (
            ("method", pa.array([f"entry-{number}"] * len(clap))),
            ("title", pa.array([f"Entry {number}"] * len(clap))),
            ("accuracy", pa.array(values)),
        ):
            entry = entry.set_column(entry.column_names.index(name), name, column)
        tables.append(entry)
    found = panel(pa.concat_tables(tables))
    marks = {name: EntryMark("verified", f"entries/{name}/index.html") for name in found.methods}
    known = ("nll", "brier", "ece")
    values = {name: rng.uniform(size=found.records.num_rows) for name in known}
    measured = {"accuracy": found} | {name: found.by_metric(METRICS[name], values[name]) for name in known}
    page = tmp_path / "index.html"
    page.write_text(board_page(found, Context(entries=marks, measured=measured), "500 simulated entries.", {}))
    tab = opened(browser, page)
    session = tab.context.new_cdp_session(tab)
    # Processor time of the page's thread: other programs of a busy machine do not count.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    start = time.perf_counter()
    tab.reload()
    took = time.perf_counter() - start
    busy = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}["TaskDuration"]
    assert tab.locator("#board tbody tr").count() == 521
    assert tab.trouble == []
    print(f"{busy:.2f} s of the processor, {took:.2f} s by the clock, {page.stat().st_size / 1e6:.1f} MB")
    assert 0.1 < busy < 2
