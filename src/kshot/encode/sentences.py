"""Sentences about classes that come with kshot, for the tier `cupl`; docs/sentences.md says how they were made."""

import json
import lzma
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

QUESTIONS = (
    "What does it look like?",
    "How does one tell it from its nearest neighbours in this dataset?",
    "What does a photo of it show?",
)
_ARTICLES = {"a", "an", "the"}


class Matched(NamedTuple):
    """Sentences of every class, None where no kept name is spelt alike, and those classes."""

    sentences: list[list[str] | None]
    unmatched: list[str]


@cache
def kept_sentences() -> dict[str, list[tuple[str, list[str]]]]:
    """For every dataset its classes in order, each with one sentence per question."""
    content = lzma.decompress(files("kshot.encode").joinpath("sentences.json.xz").read_bytes())
    return {name: [(c, own) for c, own in classes] for name, classes in json.loads(content).items()}


def match_classes(classes: Sequence[str], kept: Sequence[tuple[str, list[str]]]) -> Matched:
    """Match by spelling without case, spaces, hyphens, underscores and articles.

    A name that stands twice in both lists (ImageNet has two) is matched in order.
    """
    by_key: dict[str, list[list[str]]] = {}
    for name, sentences in kept:
        by_key.setdefault(spelling(name), []).append(sentences)
    found: list[list[str] | None] = []
    seen: dict[str, int] = {}
    for name in classes:
        key = spelling(name)
        here, number = by_key.get(key, []), seen.get(key, 0)
        found.append(here[min(number, len(here) - 1)] if here else None)
        seen[key] = number + 1
    return Matched(found, [name for name, own in zip(classes, found, strict=True) if own is None])


def spelling(name: str) -> str:
    """A name's lower-cased letters and digits without articles."""
    words = re.split(r"[\W_]+", name.casefold())
    return "".join(word for word in words if word not in _ARTICLES)
