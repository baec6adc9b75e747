"""A submission: one folder of text, parquet files and a wheel. Reading it runs nothing of it.

NAME/about.toml                     answers of its authors (`kshot.board.about`)
NAME/entry.json                     method, study, board, wheel and environment, as `kshot board submit` found them
NAME/*.whl                          the source of the method
NAME/records/study.json             header of the records
NAME/records/compact/*.parquet      one record a cell
NAME/records/answers/…/*.parquet    what the head answered about every test picture, one file a cell
"""

import hashlib
import json
import re
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kshot.bench.study import MethodSpec
from kshot.board.about import AuthorsAnswers, parse_about
from kshot.errors import KshotError
from kshot.files import safe_name, sha256

ABOUT, ENTRY, RECORDS = "about.toml", "entry.json", "records"
MOST_FILES = 50_000
LARGEST_IN_ALL = 2**30
_PART = r"[A-Za-z0-9][A-Za-z0-9._+-]*"
FOLDERS = re.compile(rf"records(/compact|/answers(/{_PART}){{0,3}})?")
# Everything that a submission may hold, and how large each file may be.
ALLOWED = {
    re.compile(r"about\.toml|entry\.json"): 2**16,
    re.compile(rf"{_PART}\.whl"): 2**25,
    re.compile(r"records/study\.json"): 2**22,
    re.compile(r"records/compact/joined\.[0-9a-f]{16}\.parquet"): 2**26,
    re.compile(rf"records/answers/{_PART}/{_PART}/{_PART}/K\d{{2,9}}-s\d+(-[a-z-]+)?\.[0-9a-f]{{16}}\.parquet"): 2**24,
}


@dataclass(frozen=True)
class EntryFile:
    """entry.json: what was computed, with what."""

    method: str
    study: str
    board: str
    wheel: str
    wheel_sha256: str
    environment: dict[str, str]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True)
class Submission:
    """A folder whose form is right; its content is checked by `kshot.board.check`."""

    folder: Path
    about: AuthorsAnswers
    entry: EntryFile
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def records(self) -> Path:
        return self.folder / RECORDS

    @property
    def wheel(self) -> Path:
        return self.folder / self.entry.wheel

    @property
    def spec(self) -> MethodSpec:
        return MethodSpec(self.entry.method, self.entry.method)

    @cached_property
    def digest(self) -> str:
        """Of all files with their names: a verdict holds for these and no others."""
        lines = "".join(f"{name} {sha256(self.folder / name)}\n" for name in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()


def read_submission(folder: Path) -> Submission:
    """The form of a folder; what does not belong into a submission is refused with one sentence."""
    folder = folder.absolute()
    safe_name("submission", folder.name)
    if folder.is_symlink() or not folder.is_dir():
        raise KshotError(f"{folder} is no folder.")
    try:
        return _read(folder, tuple(sorted(_files(folder))))
    except OSError as error:
        raise KshotError(f"{folder.name} cannot be read ({error.strerror}).") from None


def _read(folder: Path, files: tuple[str, ...]) -> Submission:
    """Content of about.toml and entry.json, and whether the wheel is there."""
    for needed in (ABOUT, ENTRY, f"{RECORDS}/study.json"):
        if needed not in files:
            raise KshotError(f"{folder.name} lacks {needed}; `kshot board submit` writes it.")
    entry = _entry(_text(folder / ENTRY))
    wheels = [name for name in files if name.endswith(".whl")]
    if wheels != [entry.wheel]:
        raise KshotError(f"{folder.name} must hold one wheel, the one that {ENTRY} names.")
    if sha256(folder / entry.wheel) != entry.wheel_sha256:
        raise KshotError(f"{entry.wheel} is not the wheel that {ENTRY} names: its sha256 differs.")
    return Submission(folder, parse_about(_text(folder / ABOUT)), entry, files)


def _files(folder: Path) -> Iterator[str]:
    """Yield the names of all files below; refuse links, devices, and what is too many or too large."""
    total = 0
    for count, path in enumerate(folder.rglob("*"), start=1):
        name, about = path.relative_to(folder).as_posix(), path.lstat()
        shown = ascii(name)[1:-1][:80]
        if count > MOST_FILES:
            raise KshotError(f"{folder.name} holds more than {MOST_FILES:,} files.")
        if stat.S_ISDIR(about.st_mode) and FOLDERS.fullmatch(name):
            continue
        if not stat.S_ISREG(about.st_mode):
            raise KshotError(f"{folder.name} holds {shown}, which is neither a plain file nor a known folder.")
        most = next((size for pattern, size in ALLOWED.items() if pattern.fullmatch(name)), None)
        if most is None:
            raise KshotError(f"{folder.name} holds {shown}, which does not belong into a submission.")
        total += about.st_size
        if about.st_size > most or total > LARGEST_IN_ALL:
            raise KshotError(f"{folder.name} is too large: {shown} has {about.st_size:,} bytes.")
        yield name


def _entry(text: str) -> EntryFile:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise KshotError(f"{ENTRY} is no JSON ({str(error)[:100]}).") from None
    words = ("method", "study", "board", "wheel", "wheel_sha256")
    sound = isinstance(content, dict) and content.keys() == {*words, "environment"}
    sound = sound and all(isinstance(content[word], str) and content[word].isprintable() for word in words)
    if not sound or not _plain_environment(content["environment"]):
        raise KshotError(f"{ENTRY} must hold {', '.join(words)} and environment, as `kshot board submit` writes them.")
    if not re.fullmatch(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}", content["method"], re.ASCII):
        raise KshotError(f"{ENTRY}: method must be package.module:Class.")
    return EntryFile(**content)


def _plain_environment(given: Any) -> bool:
    pairs = list(given.items())[:101] if isinstance(given, dict) else []
    texts = [text for pair in pairs for text in pair]
    return 0 < len(pairs) <= 100 and all(isinstance(t, str) and len(t) <= 100 and t.isprintable() for t in texts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise KshotError(f"{path.name} is not UTF-8 text.") from None
