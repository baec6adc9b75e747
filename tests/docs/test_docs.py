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

from processes import in_this_folder, wait_until

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PORT = "8642"
PATIENCE = 1200


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def runnable(page: Path) -> bool:
    return any(kind == "sh" for kind, _ in blocks(page))


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


def test_readme_shows_every_method_of_the_embedded_study():
    from kshot.bench.study import load_study
    from kshot.methods import registry

    shown = (ROOT / "README.md").read_text()
    for spec in load_study("embedded").methods().values():
        assert registry.create(spec.use, **spec.params).info.title in shown, "run `make readme`"


def test_open_report_is_rebuilt_from_its_records(tmp_path):
    from kshot.bench.records import Records
    from kshot.bench.status import run_status
    from kshot.bench.study import load_study

    kept = ROOT / "docs" / "open"
    assert Records(kept / "records").study() == load_study("open"), "run `make open`"
    assert run_status(kept / "records").missing == 0
    command = [sys.executable, "-m", "kshot", "report", kept / "records", "--headroom", "--output", tmp_path]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert (tmp_path / "report.md").read_text() == (kept / "report.md").read_text(), "run `make open`"


def test_the_atlas_shows_the_tables_of_its_records():
    from kshot.bench.records import Records, load_table
    from kshot.bench.study import load_study
    from kshot.report.tables import make_table
    from kshot.stats.panel import panel

    folder = ROOT / "docs" / "atlas" / "records"
    assert Records(folder).study() == load_study("atlas")
    made, page = panel(load_table(folder)), (ROOT / "docs" / "atlas.md").read_text()
    for key in ("knobs", "fixed_heads"):
        assert make_table(key, made).markdown().strip() in page


@pytest.mark.parametrize(
    ("study", "keys"),
    [
        ("beyond", ("metrics", "profiles", "unseen")),
        ("shift", ("leaderboard",)),
        ("new-classes", ("base_to_new",)),
        ("beyond-clip", ("metrics", "profiles", "unseen", "base_to_new")),
    ],
)
def test_beyond_accuracy_shows_the_tables_of_its_records(study, keys):
    from kshot.bench.records import Records
    from kshot.bench.status import run_status
    from kshot.bench.study import load_study
    from kshot.results import load_records

    folder, page = ROOT / "docs" / "beyond" / study, (ROOT / "docs" / "beyond-accuracy.md").read_text()
    assert Records(folder).study() == load_study(study)
    assert run_status(folder).missing == 0
    for key in keys:
        assert load_records(folder).table(key).markdown().strip() in page, f"kshot report {folder} --table {key}"


def test_the_page_of_gauss_probe_and_the_advice_say_what_the_records_say(capsys):
    from kshot.bench.records import Records
    from kshot.bench.status import run_status
    from kshot.bench.study import load_study
    from tools import evidence

    kept = ROOT / "docs" / "gauss" / "records"
    assert Records(kept).study() == load_study("gauss"), "run `kshot run gauss`"
    assert run_status(kept).missing == 0
    accuracy, classes = evidence.read(evidence.FOLDERS)
    found = evidence.print_tables(accuracy, classes)
    evidence.same_shots_table(evidence.FOLDERS)
    assert json.loads(evidence.WRITTEN.read_text()) == found, "run tools/evidence.py"
    page = (ROOT / "docs" / "gauss-probe.md").read_text()
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert table in page, "put what tools/evidence.py prints into docs/gauss-probe.md"


def test_clip_records_are_whole_and_its_page_shows_what_they_say():
    from tools.update_clip import PAGE, RECORDS, filled

    from kshot.bench.records import Records
    from kshot.bench.status import run_status
    from kshot.bench.study import load_study

    assert Records(RECORDS).study() == load_study("clip"), "run `make clip`"
    assert run_status(RECORDS).missing == 0
    assert filled(PAGE.read_text()) == PAGE.read_text(), "run tools/update_clip.py"


def test_readme_example():
    from problems import problem

    data = problem()
    code = next(text for kind, text in blocks(ROOT / "README.md") if kind == "python")
    names = {"X": data.X, "y": data.y, "T": data.text, "queries": data.test.X}
    exec(compile(code, "README.md", "exec"), names)
    assert names["head"].selected_["lambda"].from_ == "support"


def test_the_page_of_promises_shows_what_was_measured():
    from tools.promises import KEPT, tables

    page = (ROOT / "docs" / "promises.md").read_text()
    for table in tables(KEPT).split("\n\n"):
        assert table in page, "put what `python -m tools.promises --show` prints into docs/promises.md"
