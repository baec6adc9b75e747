"""A real Chromium, and reports for it to open; skipped where there is none, required in CI."""

import os
import shutil

import numpy as np
import pytest

from browser_names import CLOSING, HOSTILE, MARKUP
from colours import ColourEncoder, write_shades
from kshot.pictures.fit import fit_folder
from kshot.report.context import Context
from kshot.report.tables import all_tables
from kshot.report.write import write_report
from kshot.stats.panel import panel
from kshot.types import Sketch
from serving import Server
from synthetic_records import as_table, synthetic_rows

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        reason = "no Chromium on this machine; `make browser` installs it"
        if os.environ.get("KSHOT_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=FLAGS, timeout=180_000)
        yield found
        found.close()


def sketch(dataset):
    rng = np.random.default_rng(0)
    text, image = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)) + 3
    names = (HOSTILE, CLOSING, "plain", "& <b>bold</b>")
    return Sketch(dataset, "ViT-B-16", "dataset", names, text, image, {4: image + 0.1}, 0, 4, 0.8)


@pytest.fixture(scope="session")
def records():
    """Two of the names in them are attacks."""
    rename = {"gamma": HOSTILE, "delta": CLOSING}
    rows = synthetic_rows(datasets=("alpha", "beta", "gamma", "delta"))
    return [
        row
        | {"dataset": rename.get(row["dataset"], row["dataset"])}
        | ({"title": "LP++ <i>x</i>"} if row["method"] == "lpp" else {})
        for row in rows
    ]


@pytest.fixture(scope="session")
def report(tmp_path_factory, records):
    found = panel(as_table(records))
    context = Context(sketches=[sketch(name) for name in ("alpha", HOSTILE)])
    folder = tmp_path_factory.mktemp("report")
    write_report(found, all_tables(found), folder, context)
    return folder / "report.html"


@pytest.fixture
def page(browser, report, request):
    """The open page; any error on the console, dialog or request beyond the file itself fails the test."""
    options = getattr(request, "param", {})
    context = browser.new_context(**options)
    opened = context.new_page()
    trouble = []
    opened.on("console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
    opened.on("request", lambda sent: None if sent.url.startswith("file:") else trouble.append(sent.url))
    opened.goto(report.as_uri())
    yield opened
    context.close()
    assert trouble == []


@pytest.fixture
def served_head(tmp_path, monkeypatch):
    """Three colours; one class carries a name that would be markup."""
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))
    write_shades(tmp_path / "shades", np.random.default_rng(0))
    (tmp_path / "names.txt").write_text(f"red=red {MARKUP}\n")
    return fit_shades(tmp_path)


def fit_shades(folder, method="gda_alpha1"):
    """With a closed form, so that the tests wait for the page and not for a solver."""
    given = {"encoder": ColourEncoder(), "names": folder / "names.txt", "method": method}
    fitted = fit_folder(folder / "shades", **given)
    fitted.head.save(folder / "head.safetensors")
    return folder / "head.safetensors"


@pytest.fixture
def served(browser, served_head):
    """Opens the page of the served head in a browser of its own options; an error on it fails the test."""
    opened = []

    def open_page(**options):
        server = Server(served_head)
        context = browser.new_context(**options)
        page = context.new_page()
        page.server, page.trouble = server, []
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("console", lambda line: page.trouble.append(line.text) if "Security" in line.text else None)
        opened.append((page, context, server))
        page.goto(server.url)
        page.get_by_text("3 classes, ").wait_for()
        return page

    yield open_page
    for page, context, server in opened:
        assert page.trouble == []
        assert page.title() == "kshot"
        context.close()
        server.close()
