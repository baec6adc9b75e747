"""Sentences about classes from any chat endpoint of yours, as a file for `kshot encode --sentences cupl=FILE`.

    python tools/sentences.py classes.txt cupl.json --endpoint http://localhost:8000/v1/chat/completions --model NAME

`classes.txt` has one class a line. The file grows class by class; run the same command again to go on. The questions
are those of tools/sentences.toml. A key, if the endpoint wants one, is read from the variable --key-variable.
"""

import argparse
import json
import os
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from kshot.errors import InputError, KshotError
from kshot.files import write_text

QUESTIONS = Path(__file__).with_suffix(".toml")
IN_ONE_SENTENCE = "Answer with one sentence about what can be seen, and use the name '{}' in it."
SECONDS_TO_WAIT = 120


def questions(dataset: str, file: Path) -> list[str]:
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return content["datasets"].get(dataset, content["any"])


def chat(endpoint: str, model: str, key: str | None) -> Callable[[str], str]:
    """Ask one question; the endpoint speaks the common chat format."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def ask(question: str) -> str:
        body = {"model": model, "messages": [{"role": "user", "content": question}], "temperature": 0.9}
        request = urllib.request.Request(endpoint, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_TO_WAIT) as answer:
                return str(json.load(answer)["choices"][0]["message"]["content"])
        except (OSError, urllib.error.URLError) as error:
            raise KshotError(f"{endpoint} gave no answer ({error}). What is written is kept; run it again.") from None
        except (ValueError, LookupError, TypeError) as error:
            raise KshotError(f"{endpoint} does not answer in the chat format ({type(error).__name__}).") from None

    return ask


def write_sentences(
    classes: Sequence[str], asked: Sequence[str], times: int, ask: Callable[[str], str], file: Path
) -> None:
    """{class: [sentence, …]}, the format that CuPL published; classes that are in the file already are left alone."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for name in classes:
        if known.get(name):
            continue
        wanted = [f"{question.format(name)} {IN_ONE_SENTENCE.format(name)}" for question in asked] * times
        said = (" ".join(ask(question).split()) for question in wanted)
        known[name] = list(dict.fromkeys(sentence for sentence in said if sentence))
        if not known[name]:
            raise InputError(f"the model said nothing about '{name}'.")
        write_text(file, json.dumps(known, indent=1, ensure_ascii=False) + "\n")
        print(f"{len(known)}/{len(classes)} {name}: {len(known[name])} sentences", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dataset", default="", help="whose questions to ask; `any` unless the file has some")
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--times", type=int, default=3, help="how often each question is asked")
    parser.add_argument("--key-variable", default="")
    given = parser.parse_args(arguments)
    lines = given.classes.read_text(encoding="utf-8").splitlines()
    classes = [line.strip() for line in lines if line.strip()]
    ask = chat(given.endpoint, given.model, os.environ.get(given.key_variable))
    try:
        write_sentences(classes, questions(given.dataset, given.questions), given.times, ask, given.file)
    except KshotError as error:
        print(f"sentences: {error}", file=sys.stderr)
        return 2
    print(f"next: kshot encode … --sentences cupl={given.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
