"""What the package says about itself, held to what it is."""

import re
import tomllib
from pathlib import Path

import kshot
from kshot.data.store import BUNDLED

ROOT = Path(__file__).resolve().parents[2]


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_notice_names_source_and_licence_of_every_bundled_set():
    notice = one_line((ROOT / "NOTICE").read_text())
    catalog = tomllib.loads((ROOT / "src/kshot/data/catalog/open.toml").read_text())
    bundled = [folder.name for folder in BUNDLED.iterdir() if not folder.name.startswith(".")]
    assert len(bundled) >= 7
    for name in bundled:
        assert f" {name} " in notice
        assert f"Source: {catalog[name]['source']}." in notice
        assert f"Licence: {catalog[name]['licence']}." in notice


def test_citation_and_changelog_know_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == kshot.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == kshot.__version__
