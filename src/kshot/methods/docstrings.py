"""What the docstring of a head says, for pages that show it."""

import inspect
import re

from kshot.methods.base import Classifier

_PARAMETERS = re.compile(r"\n\nParameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\w+) : .*\n((?:    .*\n?)+)", re.MULTILINE)


def summary(head: type[Classifier]) -> str:
    """Its first paragraph."""
    return _flowing(_text(head).partition("\n\n")[0])


def parameter_words(head: type[Classifier]) -> dict[str, str]:
    """What each parameter is."""
    section = _PARAMETERS.search(_text(head))
    return {name: _flowing(words) for name, words in _ENTRY.findall(section[1])} if section else {}


def _text(head: type[Classifier]) -> str:
    return inspect.getdoc(head) or ""


def _flowing(text: str) -> str:
    return " ".join(text.split())
