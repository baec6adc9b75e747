"""Sentences about classes that come with kshot, for the tier `cupl`; docs/sentences.md says how they were made."""

import json
import lzma
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

QUESTIONS = (
    "What does it look like?",
    "How does one tell it from its nearest neighbours in this dataset?",
    "What does a photo of it show?",
)
# The datasets' names in CuPL's repository, which has no sentences about EuroSAT.
CUPL_NAMES = {
    "Aircraft": ("airplane",),
    "Caltech101": ("cal",),
    "Cars": ("cars",),
    "DTD": ("texture",),
    "Flowers102": ("flower",),
    "Food101": ("food",),
    "ImageNet": ("imagenet",),
    "Pets": ("pets", "pet"),
    "SUN397": ("sun",),
    "UCF101": ("ucf",),
}
_ARTICLES = {"a", "an", "the"}


@cache
def kept_sentences() -> dict[str, list[tuple[str, list[str]]]]:
    """For every dataset its classes in order, each with one sentence per question."""
    content = lzma.decompress(files("kshot.encode").joinpath("sentences.json.xz").read_bytes())
    return {name: [(c, own) for c, own in classes] for name, classes in json.loads(content).items()}


def sentence_file(folder: Path, dataset: str) -> Path | None:
    """The file of a dataset: DATASET.json, or the name that it has in CuPL's repository."""
    names = [f"{dataset}.json", *(f"{own}_prompts_full.json" for own in CUPL_NAMES.get(dataset, ()))]
    found = [file for name in names for file in sorted(folder.rglob(name))]
    return min(found, key=lambda file: "base_prompts" in file.parts, default=None)


def match_classes(classes: Sequence[str], kept: Sequence[tuple[str, list[str]]]) -> list[list[str] | None]:
    """The sentences of every class, None where no kept name has the same `spelling`.

    A name that stands twice in both lists (ImageNet has two) is matched in order.
    """
    by_key: dict[str, list[list[str]]] = {}
    for name, sentences in kept:
        by_key.setdefault(spelling(name), []).append(sentences)
    found: list[list[str] | None] = []
    seen: Counter[str] = Counter()
    for key in map(spelling, classes):
        own = by_key.get(key, [])
        found.append(own[min(seen[key], len(own) - 1)] if own else None)
        seen[key] += 1
    return found


def spelling(name: str) -> str:
    """A name's lower-cased letters and digits without articles; the A of an A 340 is none."""
    words = split_words(name)
    after = [*words[1:], ""]
    return "".join(w for w, n in zip(words, after, strict=True) if w not in _ARTICLES or n[:1].isdigit())


def split_words(text: str) -> list[str]:
    """The lower-cased words of a text, without punctuation and underscores."""
    return re.findall(r"[^\W_]+", text.casefold())
