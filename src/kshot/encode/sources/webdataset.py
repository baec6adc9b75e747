"""Webdataset tar shards in clip-benchmark's layout, on disk or over HTTP.

ROOT/classnames.txt, ROOT/zeroshot_classification_templates.txt (with {c}), ROOT/{train,test}/nshards.txt and
0.tar, 1.tar …; a picture is a member NAME.{webp,png,jpg} with its class number in NAME.cls. Members are read in
memory and never written under the name they claim; members of any other kind are not opened.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from kshot.encode.hub import require_connection
from kshot.encode.pictures import decode
from kshot.encode.sources.http import Shelf, is_url
from kshot.encode.sources.source import Picture, Shard
from kshot.errors import InputError

PICTURES = frozenset({".webp", ".png", ".jpg", ".jpeg"})
MOST_BYTES = {"picture": 64 << 20, "label": 64}
MOST_SHARDS, MOST_TEXT = 100_000, 64 << 20
SPLITS = {"train": "pool", "test": "test"}


@dataclass(frozen=True)
class WebDataset:
    """`evaluation_only` takes the test shards as one part `all`, for datasets that kshot splits itself."""

    origin: str
    classes: tuple[str, ...]
    templates: tuple[str, ...]
    counts: dict[str, int]
    evaluation_only: bool
    shelf: Shelf

    def shards(self) -> list[Shard]:
        names = ["test"] if self.evaluation_only else ["train", "test"]
        parts = {"test": "all"} if self.evaluation_only else SPLITS
        return [Shard(parts[split], f"{split}/{n}.tar") for split in names for n in range(self.counts[split])]

    def pictures(self, shard: Shard) -> Iterator[Picture]:
        where = f"{self.origin.rstrip('/')}/{shard.key}"
        with self.shelf.opened(shard.key) as file:
            for name, content, label in _samples(file, where):
                if not 0 <= label < len(self.classes):
                    raise InputError(f"{where}: {name} has class {label}; allowed is 0..{len(self.classes) - 1}.")
                picture_id = f"{shard.key.removesuffix('.tar')}/{name}"
                yield Picture(shard.part, picture_id, label, partial(decode, content, f"{where}:{name}"))


def webdataset_source(origin: str, evaluation_only: bool = False, keep: Path | None = None) -> WebDataset:
    """Read the small text files; shards come when they are asked for, and stay in `keep` if that is given."""
    if is_url(origin):
        require_connection(origin)
    shelf = Shelf(origin, keep)
    counts = {split: _count(shelf, f"{split}/nshards.txt") for split in SPLITS if shelf.exists(f"{split}/nshards.txt")}
    if "test" not in counts:
        raise InputError(f"{origin} has no test/nshards.txt; expected clip-benchmark's webdataset layout.")
    templates = "zeroshot_classification_templates.txt"
    return WebDataset(
        origin,
        tuple(_lines(shelf, "classnames.txt")),
        tuple(line.replace("{c}", "{}") for line in _lines(shelf, templates)) if shelf.exists(templates) else (),
        counts,
        evaluation_only or "train" not in counts,
        shelf,
    )


def is_webdataset(origin: str) -> bool:
    return Shelf(origin).exists("test/nshards.txt")


def _count(shelf: Shelf, name: str) -> int:
    lines = _lines(shelf, name)
    if len(lines) != 1 or not lines[0].strip().isdecimal() or not 0 < int(lines[0]) <= MOST_SHARDS:
        shown = " ".join(lines)[:40]
        raise InputError(f"{name} says '{shown}'; it must hold one number of shards, from 1 to {MOST_SHARDS:,}.")
    return int(lines[0])


def _lines(shelf: Shelf, name: str) -> list[str]:
    with shelf.opened(name) as file:
        try:
            return [line for line in file.read(MOST_TEXT).decode().splitlines() if line.strip()]
        except UnicodeDecodeError as error:
            raise InputError(f"{name} is not a text file in UTF-8 ({error}).") from None


def _samples(file, where: str) -> Iterator[tuple[str, bytes, int]]:
    """Pictures paired with their class numbers, in the order of the archive."""
    waiting: dict[str, bytes | int] = {}
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                name, kind = _accepted(member)
                if kind is None:
                    continue
                if member.size > MOST_BYTES[kind]:
                    raise InputError(f"{where}: {member.name} declares {member.size} bytes; refused.")
                stream = archive.extractfile(member)
                content = stream.read() if stream else b""
                value = content if kind == "picture" else _class_number(content, f"{where}: {member.name}")
                other = waiting.pop(name, None)
                if other is None:
                    waiting[name] = value
                elif isinstance(value, bytes) and isinstance(other, int):
                    yield name, value, other
                elif isinstance(value, int) and isinstance(other, bytes):
                    yield name, other, value
                else:
                    raise InputError(f"{where}: {name} occurs twice.")
    except tarfile.TarError as error:
        raise InputError(f"{where} is not a readable tar archive ({error}).") from None
    if waiting:
        raise InputError(f"{where}: {min(waiting)} has a picture without class or a class without picture.")


def _accepted(member: tarfile.TarInfo) -> tuple[str, str | None]:
    """The sample's name and what the member is; links, folders, devices and other files are nothing."""
    path = PurePosixPath(member.name)
    if not member.isreg() or path.is_absolute() or ".." in path.parts:
        return "", None
    suffix = path.suffix.lower()
    kind = "picture" if suffix in PICTURES else "label" if suffix == ".cls" else None
    return path.name.removesuffix(path.suffix), kind


def _class_number(content: bytes, where: str) -> int:
    text = content.decode("ascii", "replace").strip()
    if not text.isdigit():
        raise InputError(f"{where} holds '{text[:20]}', not a class number.")
    return int(text)
