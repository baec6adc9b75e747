"""about.toml of a submission: who made the method and how, in answers that can be compared."""

import datetime
import re
import tomllib
from dataclasses import asdict, dataclass, fields
from typing import Any

from kshot.errors import KshotError, unknown

LONGEST = 300
# The question that each field answers, and its allowed answers where these are limited.
QUESTIONS = {
    "name": "Name of the method on the board",
    "authors": "Who made it: a list of names",
    "link": "Where it is described: a web address, or empty",
    "licence": "Licence of its code, as SPDX names it",
    "date": "Date of the submission, as 2026-01-31",
    "hyperparameters": "How the hyperparameters were chosen, and on what",
    "extra_data": "Data beyond the evidence that a cell hands over",
    "hardware": "Machine that computed the records",
}
ANSWERS = {
    "hyperparameters": {
        "none": "there are none",
        "published": "values of a publication",
        "shots": "on the shots of each cell",
        "other-datasets": "on datasets that this board does not have",
        "these-datasets": "on datasets of this board",
    },
    "extra_data": {
        "none": "none",
        "weights": "weights trained on other data",
        "unlabelled": "further pictures without labels",
        "labelled": "further labelled pictures",
    },
}


@dataclass(frozen=True)
class AuthorsAnswers:
    """The answers of one about.toml, all of them checked."""

    name: str
    authors: tuple[str, ...]
    link: str
    licence: str
    date: datetime.date
    hyperparameters: str
    extra_data: str
    hardware: str

    def answers(self) -> dict[str, str]:
        """What was answered, in words for the page."""
        words = {key: ANSWERS[key][str(value)] if key in ANSWERS else value for key, value in asdict(self).items()}
        words["authors"] = ", ".join(self.authors)
        shown = {key: value for key, value in words.items() if value and key != "name"}
        return {key.replace("_", " ").capitalize(): str(value) for key, value in shown.items()}


def blank_about() -> str:
    """A form to fill in, with every question and its allowed answers."""
    lines = []
    for key, question in QUESTIONS.items():
        allowed = ANSWERS.get(key, {})
        lines += [f"# {question}.", *(f'#   "{answer}": {words}' for answer, words in allowed.items())]
        lines += ["authors = []" if key == "authors" else f'{key} = ""', ""]
    return "\n".join(lines)


def parse_about(text: str) -> AuthorsAnswers:
    """Read and check all answers; the first wrong or missing one is the error."""
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise KshotError(f"about.toml is not valid TOML: {str(error)[:LONGEST]}") from None
    known = [field.name for field in fields(AuthorsAnswers)]
    for key in given:
        if key not in known:
            raise KshotError("about.toml: " + unknown("question", key[:60], known, "Remove it."))
    for key in known:
        given[key] = _answer(key, given.get(key))
    return AuthorsAnswers(**given)


def _answer(key: str, value: Any) -> Any:
    if key == "authors":
        if not isinstance(value, list) or not 0 < len(value) <= 50:
            raise _wrong(key, "a list of names in quotes")
        return tuple(_line(key, name) for name in value)
    if key == "date":
        try:
            return datetime.date.fromisoformat(str(value))
        except ValueError:
            raise _wrong(key, "a day such as 2026-01-31") from None
    line = _line(key, value, may_be_empty=key == "link")
    if key == "name" and (not line.isascii() or re.search("verified|declared|kshot", line, re.IGNORECASE)):
        raise _wrong(key, "letters, digits and signs of ASCII, without the words verified, declared and kshot")
    if key in ANSWERS and line not in ANSWERS[key]:
        raise _wrong(key, f"one of {', '.join(ANSWERS[key])}")
    if key == "link" and line and not re.fullmatch(r"https?://[^\s<>\"'\\]+", line):
        raise _wrong(key, "an address that begins with https://, or nothing")
    if key == "licence" and not re.fullmatch(r"[A-Za-z0-9.+-]+( (WITH|AND|OR) [A-Za-z0-9.+-]+)*", line):
        raise _wrong(key, "a name such as MIT or Apache-2.0")
    return line


def _line(key: str, value: Any, may_be_empty: bool = False) -> str:
    """Check one line of visible characters; invisible ones could hide or reverse the text beside them."""
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise _wrong(key, f"one line of at most {LONGEST} visible characters in quotes")
    if not value.strip() and not may_be_empty:
        raise _wrong(key, "an answer")
    return value.strip()


def _wrong(key: str, allowed: str) -> KshotError:
    return KshotError(f"about.toml: {key} ({QUESTIONS[key]}) must be {allowed}.")
