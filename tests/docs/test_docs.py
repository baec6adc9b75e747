"""Every command and file in the docs is run, as written."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def runnable(page: Path) -> bool:
    return any(kind == "sh" for kind, _ in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.name)
def test_commands_of_a_page(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "studies", tmp_path / "studies")
    shutil.copytree(ROOT / "docs" / "open", tmp_path / "docs" / "open")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    for kind, text in blocks(page):
        named = re.match(r"# file: (\S+)\n", text)
        if named:
            (tmp_path / named[1]).write_text(text)
        elif kind == "sh":
            done = subprocess.run(["bash", "-euc", text], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_readme_commands_are_make_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set()
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        named |= set(re.findall(r"^make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert {"bench", "test"} <= named <= targets


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_readme_shows_every_method_of_the_embedded_study():
    from kshot.bench.study import load_study
    from kshot.methods import registry

    shown = (ROOT / "README.md").read_text()
    for spec in load_study(ROOT / "studies" / "embedded.toml").methods().values():
        assert registry.create(spec.use, **spec.params).info.title in shown, "run `make readme`"


def test_open_report_is_rebuilt_from_its_records(tmp_path):
    from kshot.bench.records import Records
    from kshot.bench.status import standing
    from kshot.bench.study import load_study

    kept = ROOT / "docs" / "open"
    assert Records(kept / "records").study() == load_study(ROOT / "studies" / "open.toml"), "run `make open`"
    assert standing(kept / "records").missing == 0
    command = [sys.executable, "-m", "kshot", "report", kept / "records", "--headroom", "--output", tmp_path]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert (tmp_path / "report.md").read_text() == (kept / "report.md").read_text(), "run `make open`"


def test_readme_example():
    from problems import problem

    data = problem()
    code = next(text for kind, text in blocks(ROOT / "README.md") if kind == "python")
    names = {"X": data.X, "y": data.y, "T": data.text, "queries": data.test.X}
    exec(compile(code, "README.md", "exec"), names)
    assert names["head"].selected_["lambda"].from_ == "support"
