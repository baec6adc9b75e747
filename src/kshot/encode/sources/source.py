"""What every source offers: named parts, cut into shards that can be read again one by one."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kshot.errors import InputError
from kshot.files import real_path

if TYPE_CHECKING:
    from PIL.Image import Image

ROWS_PER_SHARD = 500


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture with an id that never changes; `load` decodes it to RGB."""

    part: str
    id: str
    label: int
    load: Callable[[], "Image"]


@dataclass(frozen=True, slots=True)
class PictureShard:
    """Pictures that are encoded together, whole or again; `key` changes when they change."""

    part: str
    key: str


@runtime_checkable
class Source(Protocol):
    """Pictures of one dataset; `templates` hold {} for the class name."""

    @property
    def origin(self) -> str: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def templates(self) -> tuple[str, ...]: ...
    def shards(self) -> Sequence[PictureShard]: ...
    def pictures(self, shard: PictureShard) -> Iterator[Picture]: ...


@dataclass(frozen=True)
class Listed:
    """Pictures that are known one by one, in a fixed order."""

    origin: str
    classes: tuple[str, ...]
    rows: Sequence[Picture]
    templates: tuple[str, ...] = ()

    def shards(self) -> list[PictureShard]:
        return self._shards

    def pictures(self, shard: PictureShard) -> Iterator[Picture]:
        start = int(shard.key.split("-")[0])
        yield from self._by_part[shard.part][start : start + ROWS_PER_SHARD]

    def listing(self, part: str) -> list[tuple[str, int]]:
        """Ids and labels of a part."""
        return _listing(self._by_part[part])

    def readable(self, part: str, known: Container[str]) -> list[tuple[str, int]]:
        """Ids and labels of the pictures of a part that can be read; the `known` ones were read before."""
        return _listing([row for row in self._by_part[part] if row.id in known or _is_readable(row)])

    @cached_property
    def _shards(self) -> list[PictureShard]:
        return [
            PictureShard(part, f"{start}-{_digest(rows[start : start + ROWS_PER_SHARD])}")
            for part, rows in self._by_part.items()
            for start in range(0, len(rows), ROWS_PER_SHARD)
        ]

    @cached_property
    def _by_part(self) -> dict[str, list[Picture]]:
        parts: dict[str, list[Picture]] = {}
        for row in self.rows:
            parts.setdefault(row.part, []).append(row)
        return parts


@dataclass(frozen=True)
class LeavingOut:
    """A source without some of its classes; the others are numbered anew, in their order."""

    whole: Source
    names: tuple[str, ...]

    @property
    def origin(self) -> str:
        return f"{self.whole.origin} without {', '.join(self.names)}"

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(name for name in self.whole.classes if name not in self.names)

    @property
    def templates(self) -> tuple[str, ...]:
        return self.whole.templates

    def shards(self) -> Sequence[PictureShard]:
        return self.whole.shards()

    def pictures(self, shard: PictureShard) -> Iterator[Picture]:
        number = {name: place for place, name in enumerate(self.classes)}
        for picture in self.whole.pictures(shard):
            label = number.get(self.whole.classes[picture.label])
            if label is not None:
                yield replace(picture, label=label)


def leave_out(source: Source, names: Sequence[str]) -> Source:
    """The source without those of the names that are its classes."""
    named = tuple(name for name in source.classes if name in names)
    if not named:
        return source
    rest = LeavingOut(source, named)
    if not isinstance(source, Listed):
        return rest
    rows = [row for shard in source.shards() for row in rest.pictures(shard)]
    return Listed(rest.origin, rest.classes, rows, source.templates)


def _listing(rows: Sequence[Picture]) -> list[tuple[str, int]]:
    return [(row.id, row.label) for row in rows]


def _is_readable(row: Picture) -> bool:
    try:
        row.load()
    except InputError:
        return False
    return True


def _digest(rows: Sequence[Picture]) -> str:
    return hashlib.sha256(repr(_listing(rows)).encode()).hexdigest()[:16]


def readable_class(name: str) -> str:
    """A folder name as words."""
    return re.sub(r"[_\s]+", " ", name).strip()


def numbered_classes(
    named: Sequence[str] | None, labels: set[Any], where: Any
) -> tuple[tuple[str, ...], dict[Any, int]]:
    """Class names in the order of their numbers, and the number of every label that has a class. Labels are numbers or
    words of the given names; without those the labels themselves are the names."""
    if named is not None:
        names = tuple(map(readable_class, named))
        known: dict[Any, int] = {name: number for number, name in enumerate(names)}
        known |= {number: number for number in known.values()}
        return names, {label: known[label] for label in labels if label in known}
    words = all(isinstance(label, str) for label in labels)
    if not words and not all(isinstance(label, int) and label >= 0 for label in labels):
        raise InputError(f"{where} has labels that are neither class numbers nor words, such as {next(iter(labels))}.")
    # A space behind a word makes no other class.
    spelled = {label: label.strip() if words else label for label in labels}
    different = sorted(set(spelled.values()))
    place = {own: number for number, own in enumerate(different)}
    return tuple(map(str, different)), {label: place[own] for label, own in spelled.items()}


def image_and_label(where: Any, kinds: Mapping[str, str]) -> tuple[str, str]:
    """The columns of pictures and labels by the columns' kinds: the only one that fits, or the one of that name."""

    def only(wanted: str, fitting: Sequence[str]) -> str:
        if wanted in fitting or len(fitting) == 1:
            return wanted if wanted in fitting else fitting[0]
        columns = ", ".join(kinds)
        raise InputError(f"{where} has the columns {columns}; which holds the {wanted}s? Rename it to '{wanted}'.")

    image = only("image", [name for name, kind in kinds.items() if kind == "Image"])
    named = [name for name, kind in kinds.items() if kind == "ClassLabel"]
    return image, only("label", named or [name for name in kinds if name != image])


def read_text(file: Path) -> str:
    """The text of a file, without a byte order mark."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not a readable text file in UTF-8 ({error}).") from None


def text_lines(file: Path) -> list[str]:
    return [line for line in read_text(file).splitlines() if line.strip()]


def read_json(file: Path) -> Any:
    text = read_text(file)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not a readable JSON file ({error}).") from None


def csv_rows(text: str, file: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns and the rows of a CSV file's text."""
    reader = csv.DictReader(io.StringIO(text))
    try:
        return list(reader.fieldnames or ()), list(reader)
    except csv.Error as error:
        raise InputError(f"{file} is not a readable CSV file ({error}).") from None


def path_below(folder: Path, name: str, where: str) -> Path:
    """The file that a list names; a path that leaves the folder is refused."""
    path = real_path(folder / name)
    if not path.is_relative_to(real_path(folder)):
        raise InputError(f"{where}: '{name}' lies outside {folder}.")
    return path
