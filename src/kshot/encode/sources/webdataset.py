"""Webdataset tar shards in clip-benchmark's layout, in a folder or on the hub.

ROOT/classnames.txt, ROOT/zeroshot_classification_templates.txt (with {c}), ROOT/{train,test}/nshards.txt and
0.tar, 1.tar …; a picture is a member NAME.{webp,png,jpg} with its class number in NAME.cls. Members are read into
memory and never written to disk; links, devices and other kinds of members are skipped.
"""

import tarfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any

from kshot.encode.hub import HubDataset, is_url
from kshot.encode.pictures import decode
from kshot.encode.sources.source import Picture, PictureShard, text_lines
from kshot.errors import InputError, KshotError

PICTURES = frozenset({".webp", ".png", ".jpg", ".jpeg"})
MOST_SHARDS = 100_000
SPLITS = {"train": "pool", "test": "test"}
COUNT, CLASSES, TEMPLATES = "nshards.txt", "classnames.txt", "zeroshot_classification_templates.txt"

Find = Callable[[str], Path | None]


@dataclass(frozen=True)
class WebDataset:
    """`listed` are all shards; `find` returns the local copy of a file."""

    origin: str
    classes: tuple[str, ...]
    templates: tuple[str, ...]
    listed: list[PictureShard]
    find: Find
    drop: Callable[[Path], None]
    ahead: dict[str, Future[Path | None]] = field(default_factory=dict, compare=False)

    def shards(self) -> list[PictureShard]:
        return self.listed

    def pictures(self, shard: PictureShard) -> Iterator[Picture]:
        where = f"{self.origin.rstrip('/')}/{shard.key}"
        file = self._fetched(shard)
        if file is None:
            raise InputError(f"there is no {where}, but {COUNT} counts it.")
        try:
            yield from self._pictures_of(shard, file, where)
        finally:
            self.drop(file)

    def fetch_ahead(self, shards: Sequence[PictureShard]) -> None:
        """Begin to fetch the shards, one after another, while others are encoded; call it with two at most."""
        new = [shard.key for shard in shards if shard.key not in self.ahead]
        if new and not isinstance(self.find, partial):
            self.ahead.update((key, Future()) for key in new)
            # A daemon: nobody waits for a hub when the encoding has ended.
            Thread(target=self._fetch, args=(new,), daemon=True).start()

    def _fetch(self, keys: Sequence[str]) -> None:
        for key, future in [(key, self.ahead[key]) for key in keys]:
            try:
                future.set_result(self.find(key))
            except BaseException as error:
                future.set_exception(error)

    def _fetched(self, shard: PictureShard) -> Path | None:
        """A shard that was fetched ahead; where that failed, perhaps for want of space, it is fetched now."""
        with suppress(KshotError):
            return self.ahead.pop(shard.key).result() if shard.key in self.ahead else self.find(shard.key)
        return self.find(shard.key)

    def _pictures_of(self, shard: PictureShard, file: Path, where: str) -> Iterator[Picture]:
        for name, content, label in _samples(file, where):
            if not 0 <= label < len(self.classes):
                raise InputError(f"{where}: {name} has class {label}; allowed is 0..{len(self.classes) - 1}.")
            picture_id = f"{shard.key.removesuffix('.tar')}/{name}"
            yield Picture(shard.part, picture_id, label, partial(decode, content, f"{where}:{name}"))


def webdataset_source(origin: str, evaluation_only: bool = False, keep: Path | None = None) -> WebDataset:
    """Read the small text files; shards are fetched one by one, and stay in `keep` if that is given.

    `evaluation_only` takes the test shards as one part `all`, for datasets that kshot splits itself.
    """
    hub = HubDataset(origin, keep) if is_url(origin) else None
    find = hub.find if hub else partial(_find_local, Path(origin))
    splits = ("test",) if evaluation_only else ("test", "train")
    counts = {split: _count(file) for split in splits if (file := find(f"{split}/{COUNT}"))}
    classes, templates = (text_lines(file) if (file := find(name)) else [] for name in (CLASSES, TEMPLATES))
    if "test" not in counts or not classes:
        raise InputError(f"{origin} lacks test/{COUNT} or {CLASSES}; expected clip-benchmark's webdataset layout.")
    parts = SPLITS if "train" in counts else {"test": "all"}
    shards = [PictureShard(part, f"{split}/{n}.tar") for split, part in parts.items() for n in range(counts[split])]
    prompts = tuple(line.replace("{c}", "{}") for line in templates)
    return WebDataset(origin, tuple(classes), prompts, shards, find, hub.drop if hub else _keep)


def _keep(file: Path) -> None:
    """What lies in a folder stays there."""


def is_webdataset(folder: Path) -> bool:
    return _find_local(folder, f"test/{COUNT}") is not None


def _find_local(folder: Path, name: str) -> Path | None:
    return path if (path := folder / name).is_file() else None


def _count(file: Path) -> int:
    lines = text_lines(file)
    if len(lines) != 1 or not lines[0].strip().isdecimal() or not 0 < int(lines[0]) <= MOST_SHARDS:
        shown = " ".join(lines)[:40]
        raise InputError(f"{file.name} says '{shown}'; it must hold one number of shards, from 1 to {MOST_SHARDS:,}.")
    return int(lines[0])


def _samples(file: Path, where: str) -> Iterator[tuple[str, bytes, int]]:
    """Pictures with their class numbers, in the order of the archive."""
    pairs: dict[str, dict[str, Any]] = {}
    try:
        with tarfile.open(file, mode="r:") as archive:
            for member in archive:
                name, kind = _accepted(member)
                if kind is None:
                    continue
                pair = pairs.setdefault(name, {})
                if kind in pair:
                    raise InputError(f"{where}: {name} occurs twice.")
                stream = archive.extractfile(member)
                content = stream.read() if stream else b""
                pair[kind] = content if kind == "picture" else _class_number(content, f"{where}: {member.name}")
                if len(pair) == 2:
                    del pairs[name]
                    yield name, pair["picture"], pair["label"]
    except tarfile.TarError as error:
        raise InputError(f"{where} is not a readable tar archive ({error}).") from None
    if pairs:
        raise InputError(f"{where}: {min(pairs)} has a picture without class or a class without picture.")


def _accepted(member: tarfile.TarInfo) -> tuple[str, str | None]:
    """The sample's name and kind; None for links, folders, devices, other suffixes and paths that climb."""
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
