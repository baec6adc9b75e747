"""An extension of the docs' site: the first use of each word of the glossary on a page leads to its entry."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.addnodes import desc_signature

if TYPE_CHECKING:
    from sphinx.application import Sphinx

GLOSSARY = Path(__file__).resolve().parents[1] / "docs" / "glossary.md"
PLURALS = {"stratum": "strata", "study": "studies"}
# Text in these is a link, code or a heading.
CLOSED = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.Invisible, nodes.raw, desc_signature)


def entries(glossary: str) -> dict[str, str]:
    """Every form of every word, with the anchor of its entry."""
    forms = {}
    words: list[str] = re.findall(r"^## (.+)$", glossary, re.MULTILINE)
    for word in words:
        anchor = word.lower().replace(" ", "-")
        for form in (word, PLURALS.get(word, word + "s")):
            forms[form] = forms[form[0].upper() + form[1:]] = anchor
    return forms


def link_first_uses(page: nodes.document, forms: dict[str, str], address: str) -> None:
    """One link for each word; of two words that begin alike the longer counts."""
    longest_first = sorted(forms, key=len, reverse=True)
    word = re.compile(rf"(?<![\w–/-])({'|'.join(map(re.escape, longest_first))})(?![\w–/-])")
    seen: set[str] = set()
    for text in list(page.findall(nodes.Text)):
        if not any(isinstance(parent, CLOSED) for parent in _parents(text)):
            text.parent.replace(text, list(_pieces(str(text), word, forms, seen, address)))


def _pieces(
    text: str, word: re.Pattern[str], forms: dict[str, str], seen: set[str], address: str
) -> Iterator[nodes.Node]:
    done = 0
    for match in word.finditer(text):
        anchor = forms[match[0]]
        if anchor not in seen:
            seen.add(anchor)
            yield nodes.Text(text[done : match.start()])
            yield nodes.reference("", match[0], refuri=f"{address}#{anchor}", internal=True)
            done = match.end()
    yield nodes.Text(text[done:])


def _parents(node: nodes.Node) -> Iterator[nodes.Node]:
    while (node := node.parent) is not None:
        yield node


def _on_page(app: "Sphinx", page: nodes.document, name: str) -> None:
    if name != GLOSSARY.stem:
        up = "../" * name.count("/")
        link_first_uses(page, entries(GLOSSARY.read_text(encoding="utf-8")), f"{up}{GLOSSARY.stem}.html")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-resolved", _on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
