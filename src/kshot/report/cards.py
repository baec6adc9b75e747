"""A card for each method: what it is, what it looks at, what it chose and from what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kshot.report.context import Context, Described
from kshot.stats.panel import Panel

IN_WORDS = {
    "text": "the prompts of the classes",
    "support": "the labelled shots",
    "queries": "all test pictures at once, without their labels",
    "pool": "labelled pictures beside the shots",
    "few_shot_validation": "a few labelled pictures beside the shots, to choose by",
    "validation": "a labelled validation set",
    "test": "the test labels",
}
UNKNOWN = Described("", "", {}, "")


@dataclass(frozen=True, slots=True)
class Card:
    key: str
    title: str
    paper: str
    about: str
    sees: str
    chosen: str
    python: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def cards(panel: Panel, context: Context, methods: Sequence[Mapping[str, Any]]) -> list[Card]:
    """`methods` as the page carries them: with the evidence from which each fitted quantity was chosen."""
    sees = dict(zip(panel.records["method"].to_pylist(), panel.records["sees"].to_pylist(), strict=True))
    return [_card(method, sees[method["key"]], context.described.get(method["key"], UNKNOWN)) for method in methods]


def _card(method: Mapping[str, Any], sees: Sequence[str], described: Described) -> Card:
    shown = {name.partition(".")[0] for name in (*method["fitted"], *method["words"])}
    chosen = {name: source for name, source in method["from"].items() if name in shown and source != "fixed"}
    looked = [words for evidence, words in IN_WORDS.items() if evidence in sees]
    return Card(
        method["key"],
        method["title"],
        described.paper,
        described.about,
        "; ".join(looked),
        ", ".join(f"{name} by {IN_WORDS.get(source, source)}" for name, source in chosen.items()),
        described.python,
        described.parameters,
    )
