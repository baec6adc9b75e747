"""Every command and file in the docs is run, as written."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tools import refill

from processes import in_this_folder, wait_until

pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
GIVEN = """\
import numpy as np

rng = np.random.default_rng(0)
T, y = rng.normal(size=(5, 32)), np.repeat(np.arange(5), 4)
X, queries = T[y] + rng.normal(size=(20, 32)), T + rng.normal(size=(5, 32))

"""
PORT = "8642"
PATIENCE = 1200


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def runnable(page: Path) -> bool:
    return any(kind == "sh" for kind, _ in blocks(page))


def scripts(page: Path) -> dict[str, str]:
    """The Python blocks of a page that none of its commands runs, by file name; all but whole files get the names that
    the page takes for granted."""
    commands = "".join(text for kind, text in blocks(page) if kind == "sh")
    found = {}
    for number, text in enumerate(text for kind, text in blocks(page) if kind == "python"):
        named = re.match(r"# file: (\S+)\n", text)
        name = named[1] if named else f"test_block{number}.py"
        if f"python {name}" not in commands:
            found[name] = text if named else GIVEN + text
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """Features of the pictures in the docs: encoded once for all pages, and apart from those of whoever tests."""
    return tmp_path_factory.mktemp("cache")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run_as_written(commands: str, folder: Path) -> None:
    """In bash; the port is another, so that suites on one machine do not meet, and nothing is left running."""
    script = commands.replace(PORT, str(free_port()))
    # Whoever stays in the background would keep a pipe open, and its reader waiting.
    with tempfile.TemporaryFile("w+") as said:
        shell = subprocess.Popen(["bash", "-euc", script], cwd=folder, stdout=said, stderr=said, start_new_session=True)
        try:
            code = shell.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        said.seek(0)
        assert code == 0, f"{commands}\n{said.read()}"


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.name)
@pytest.mark.slow
def test_commands_of_a_page(page, tmp_path, monkeypatch, cache):
    for kept in ("open", "atlas", "clip", "beyond"):
        shutil.copytree(ROOT / "docs" / kept, tmp_path / "docs" / kept)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("KSHOT_CACHE", str(cache))
    for kind, text in blocks(page):
        named = re.match(r"# file: (\S+)\n", text)
        if named:
            (tmp_path / named[1]).write_text(text)
        elif kind == "sh":
            run_as_written(text, tmp_path)


@pytest.mark.parametrize(
    "page",
    # The README runs a whole study.
    [pytest.param(ROOT / "README.md", marks=pytest.mark.slow), *(page for page in PAGES if scripts(page))],
    ids=lambda page: page.name,
)
def test_python_blocks_are_scripts_that_run(page, tmp_path):
    for name, text in scripts(page).items():
        (tmp_path / name).write_text(text)
        runner = ["-m", "pytest", "-q"] if "def test_" in text else []
        command = [sys.executable, *runner, name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


def test_a_failing_command_fails_its_page_and_leaves_nothing_running(tmp_path, monkeypatch):
    with pytest.raises(AssertionError, match=r"\b42\b"):
        run_as_written("sleep 3600 & echo $((6 * 7)); false", tmp_path)
    monkeypatch.chdir(tmp_path)
    wait_until(lambda: not [found for found in in_this_folder() if "sleep" in found.command], "it sleeps on")


def test_readme_commands_are_make_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set()
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        named |= set(re.findall(r"^make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert {"bench", "test"} <= named <= targets


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_readme_shows_the_findings_of_the_kept_records():
    from tools.update_clip import filled
    from tools.update_readme import blocks

    text = (ROOT / "README.md").read_text()
    assert filled(text, blocks()) == text, "run `make readme`"


def test_open_report_is_rebuilt_from_its_records(tmp_path):
    kept = ROOT / "docs" / "open"
    command = [sys.executable, "-m", "kshot", "report", kept / "records", "--headroom", "--output", tmp_path]
    assert subprocess.run(command, capture_output=True).returncode == 0
    made, shown = (refill.read_tables((folder / "report.md").read_text()) for folder in (tmp_path, kept))
    assert made == shown, "run `make open`"


@pytest.mark.parametrize(
    ("page", "folder", "study"),
    [
        ("open", "open/records", "open"),
        ("clip", "clip/records", "clip"),
        ("atlas", "atlas/records", "atlas"),
        ("gauss-probe", "gauss/records", "gauss"),
        *(("beyond-accuracy", f"beyond/{name}", name) for name in ("beyond", "new-classes", "beyond-clip")),
    ],
)
def test_kept_records_are_whole_and_named_on_their_page(page, folder, study):
    from kshot.bench.records import Records
    from kshot.bench.status import run_status
    from kshot.bench.study import load_study

    records = Records(ROOT / "docs" / folder)
    saved = records.saved(study)
    assert saved.study == load_study(study), f"run `kshot run {study}`"
    assert run_status(records, saved).missing == 0
    assert f"docs/{folder.removesuffix('/records')}" in (ROOT / "docs" / f"{page}.md").read_text()


@pytest.mark.parametrize("page", refill.PAGES, ids=lambda page: page.name)
def test_tables_have_the_numbers_of_their_records(page):
    text = page.read_text()
    assert refill.MARKED.search(text)
    assert refill.refilled(text) == text, "run `python -m tools.refill`"


def test_the_pages_of_our_heads_and_the_advice_say_what_the_records_say():
    from tools import evidence

    assert json.loads(evidence.WRITTEN.read_text()) == evidence.print_tables(evidence.FOLDERS), "run tools.evidence"
    printed = refill.printed_tables()
    for page in refill.PRINTED:
        text = page.read_text()
        assert refill.replaced(text, printed) == text, "run `python -m tools.refill`"
        headings = {table[0].splitlines()[0] for table in refill.TABLE.finditer(text)}
        assert any(re.search("left-out set|chosen without", heading) and heading in printed for heading in headings)


def test_the_page_of_clip_shows_what_its_records_say():
    from tools.update_clip import PAGE, blocks, filled

    assert filled(PAGE.read_text(), blocks()) == PAGE.read_text(), "run tools/update_clip.py"


def test_the_page_of_promises_shows_what_was_measured():
    from tools.promises import KEPT, PAGE, columns, constants, read_kept, tables, with_tables

    from kshot.pictures.held_out import GROWTH, SPREAD

    page = PAGE.read_text()
    assert with_tables(page, tables(KEPT)) == page, "see `python -m tools.promises --show`"
    assert constants(columns(read_kept(KEPT))) == pytest.approx((GROWTH, SPREAD))
