"""The site of docs/: every link leads somewhere, nothing comes from elsewhere. `make docs` fails on warnings."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tools.glossary import GLOSSARY, entries

import kshot

pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[2]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Anchors(HTMLParser):
    """Ids of a page, where its links lead, and what it loads."""

    def __init__(self, page: Path):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id") or "")
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]):
            self.loaded.append(found[LOADED[tag]])


@pytest.fixture(scope="module")
def site() -> dict[Path, Anchors]:
    """Pages by path, as `make docs` built them; `make test-ci` calls it."""
    pages = sorted((ROOT / "build" / "site").rglob("*.html"))
    assert pages, "there is no site. Run `make docs`."
    return {page: Anchors(page) for page in pages}


def test_every_page_of_the_docs_is_in_the_site(site):
    names = {page.stem for page in site}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= names


def test_links_and_anchors_lead_somewhere(site):
    checked = 0
    for page, found in site.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.name}: {link}"
            if parts.fragment and target in site:
                assert unquote(parts.fragment) in site[target].ids, f"{page.name}: {link}"
                checked += 1
    assert checked > 100


def test_pages_load_nothing_from_elsewhere(site):
    assert not [link for found in site.values() for link in found.loaded if urlsplit(link).netloc]


@pytest.mark.parametrize("name", ["protocol", "run-a-study", "audit", "theory"])
def test_the_first_use_of_a_word_leads_to_the_glossary(site, name):
    (found,) = (found for page, found in site.items() if page.stem == name)
    linked = [link for link in found.links if "glossary.html#" in link]
    assert len(linked) == len(set(linked)) >= 5
    text = re.sub(r"`[^`]*`|^#.*$|\[[^\]]*\]", "", (ROOT / "docs" / f"{name}.md").read_text(), flags=re.MULTILINE)
    for word in ("cell", "stratum", "residue"):
        if re.search(rf"(?<![\w–/-]){word}(?![\w–/-])", text):
            assert f"glossary.html#{entries(GLOSSARY.read_text())[word]}" in linked


def test_the_reference_has_every_public_name():
    reference = (ROOT / "docs" / "api.md").read_text()
    for name in set(kshot.__all__) - {"__version__"}:
        assert f"kshot.{name}" in reference, name
