"""Blocks of pictures, encoded by this process or by others; a block is kept whole for each of its targets, or missing.

A block's file is named after the encoder, its preprocessing, the view recipe and the pictures, so whoever finds it does
not encode it again, and the part that is joined of whole blocks has the same bytes whoever made them.
"""

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kshot.data.shards import is_whole_shard, write_shard
from kshot.data.store import check_images
from kshot.encode.protocol import use_device
from kshot.encode.sources.source import LeavingOut, Listed, Picture, PictureShard
from kshot.encode.sources.webdataset import WebDataset
from kshot.encode.targets import Decoded, Target
from kshot.errors import FeatureError, InputError, KshotError
from kshot.progress import Progress
from kshot.types import Array
from kshot.workers import WHOLE, Shard, Workers, computed, counted, end_with, ticker

logger = logging.getLogger("kshot")

# Pictures, and what is prepared of each for the encoders of a group.
Inputs: TypeAlias = list[tuple[Decoded, Future[list[Any]]]]


class Block(NamedTuple):
    """Pictures that are encoded together, and the file of each target that lacks them."""

    shard: PictureShard
    files: dict[Target, Path]


@dataclass(frozen=True)
class Crew:
    """Who encodes: so many processes, a share of all blocks, and devices that processes of a machine take in turn."""

    workers: Workers = field(default_factory=lambda: Workers(1))
    share: Shard = WHOLE
    devices: tuple[str, ...] = ()

    def encode(self, blocks: Sequence[Block], progress: Progress) -> None:
        if self.workers.backend == "loky" and self.workers.count == 1:
            _one_after_another(blocks, progress)
        elif blocks:
            _hand_out(blocks, self, progress)


ALONE = Crew()


def _one_after_another(blocks: Sequence[Block], progress: Progress) -> None:
    """Encode in this process; the next shard of a hub is fetched meanwhile."""
    for block, following in zip_longest(blocks, blocks[1:]):
        source = next(iter(block.files)).job.source
        source_of_files = source.whole if isinstance(source, LeavingOut) else source
        if isinstance(source_of_files, WebDataset):
            source_of_files.fetch_ahead([block.shard, *([following.shard] if following else [])])
        encode_block(block.files, source.pictures(block.shard), block.shard.key, progress.advance)


class BlockTask(NamedTuple):
    """One block for another process: files by the numbers of their targets, and the pictures of a listed source."""

    shard: PictureShard
    files: dict[int, Path]
    pictures: tuple[Picture, ...] | None


class CrewSetting(NamedTuple):
    """What all blocks share; `targets` as bytes, so that a process unpacks them once."""

    targets: bytes
    devices: tuple[str, ...]
    driver: int
    pulse: str
    paths: tuple[str, ...]


def _hand_out(blocks: Sequence[Block], crew: Crew, progress: Progress) -> None:
    """Give the blocks to the workers until all are there; blocks of workers that died are given out again."""
    from joblib import delayed
    from joblib.externals.loky.backend.reduction import dumps
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    targets = list(dict.fromkeys(target for block in blocks for target in block.files))
    packed = bytes(dumps([_without_pictures(target) for target in targets]))
    number = {target: place for place, target in enumerate(targets)}
    while blocks:
        with tempfile.TemporaryDirectory(prefix="kshot-") as pulse, counted(Path(pulse), progress):
            setting = CrewSetting(packed, crew.devices, os.getpid(), pulse, tuple(sys.path))
            tasks = (
                BlockTask(block.shard, {number[target]: file for target, file in block.files.items()}, _listed(block))
                for block in blocks
            )
            with crew.workers.joined(), suppress(TerminatedWorkerError):
                list(computed(delayed(compute)(setting, task) for task in tasks))
        left = lacking(blocks)
        if len(left) == len(blocks):
            raise KshotError(
                f"{len(left)} blocks of pictures are missing, because their workers ended. What is encoded is kept: "
                "run the same command again, with fewer --workers or a smaller --batch if memory was short."
            )
        blocks = left


def _without_pictures(target: Target) -> Target:
    source = target.job.source
    slim = Listed(source.origin, source.classes, ()) if isinstance(source, Listed) else source
    return replace(target, job=replace(target.job, source=slim))


def _listed(block: Block) -> tuple[Picture, ...] | None:
    source = next(iter(block.files)).job.source
    return tuple(source.pictures(block.shard)) if isinstance(source, Listed) else None


def compute(setting: CrewSetting, task: BlockTask) -> None:
    """Encode one block in a worker."""
    end_with(setting.driver)
    sys.path.extend(path for path in setting.paths if path not in sys.path)
    if setting.devices:
        use_device(setting.devices[_turn(setting.pulse) % len(setting.devices)])
    targets = _unpacked(setting.targets)
    files = {targets[place]: file for place, file in task.files.items()}
    source = next(iter(files)).job.source
    pictures = source.pictures(task.shard) if task.pictures is None else iter(task.pictures)
    encode_block(files, pictures, task.shard.key, ticker(setting.pulse))


@lru_cache(maxsize=1)
def _turn(pulse: str) -> int:
    """The number of this process among those of the machine that share the folder."""
    for number in range(1 << 16):
        with suppress(FileExistsError):
            os.close(os.open(f"{pulse}/.{number}", os.O_CREAT | os.O_EXCL))
            return number
    return 0


@lru_cache(maxsize=1)
def _unpacked(targets: bytes) -> list[Target]:
    from joblib.externals.loky.backend.reduction import loads

    return loads(targets)


def lacking(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without those targets whose files are there and whole."""
    left = [Block(shard, {t: file for t, file in files.items() if not is_whole_shard(file)}) for shard, files in blocks]
    return [block for block in left if block.files]


def encode_block(
    files: Mapping[Target, Path], pictures: Iterator[Picture], name: str, progress: Callable[[int], None]
) -> None:
    """Decode every picture of the block once and write a file for each target."""
    job = next(iter(files)).job
    groups: dict[str, list[Target]] = {}
    for target in files:
        groups.setdefault(target.name, []).append(target)
    # No pictures: they may hold their bytes.
    rows: dict[str, list[tuple[str, int]]] = {name: [] for name in groups}
    features: dict[Target, list[Array]] = {target: [] for target in files}
    for targets, started in _started(pictures, list(groups.values()), job.batch, job.threads):
        if not (read := list(_readable(started))):
            continue
        rows[targets[0].name] += [(picture.id, picture.label) for picture, _ in read]
        for target, inputs in zip(targets, zip(*(own for _, own in read), strict=True), strict=True):
            features[target].append(target.job.encoder.encode_images(inputs).astype(np.float16))
        progress(len(read) * len(targets))
    for target, file in files.items():
        ids, labels = [name for name, _ in rows[target.name]], [label for _, label in rows[target.name]]
        if not ids and target.wanted is None and not isinstance(job.source, LeavingOut):
            raise FeatureError(f"shard {name} of {job.source.origin} holds no pictures.")
        X = np.concatenate(features[target] or [np.empty((0, target.job.encoder.dim), np.float16)])
        y = np.array(labels, np.int64)
        check_images(X, y, ids, job.source.classes)
        write_shard(file, X, y, ids)


def _started(
    pictures: Iterator[Picture], groups: Sequence[Sequence[Target]], size: int, threads: int
) -> Iterator[tuple[Sequence[Target], Inputs]]:
    """Batches of the pictures that each group of targets wants, whose inputs `threads` prepare.

    The next batch is started before one is handed out. The targets of a group differ in their encoders only.
    """
    waiting = None
    with ThreadPoolExecutor(threads) as pool:
        while batch := [Decoded(picture) for picture in islice(pictures, size)]:
            for targets in groups:
                wanted = [decoded for decoded in batch if targets[0].wants(decoded.picture)]
                if not wanted:
                    continue
                started = [(decoded, pool.submit(targets[0].inputs, decoded, targets)) for decoded in wanted]
                if waiting:
                    yield waiting
                waiting = targets, started
        if waiting:
            yield waiting


def _readable(started: Inputs) -> Iterator[tuple[Picture, list[Any]]]:
    """Pictures with the input of each encoder; one that cannot be read is logged once and left out."""
    for decoded, future in started:
        try:
            yield decoded.picture, future.result()
        except InputError as error:
            if not decoded.logged:
                logger.warning("left out: %s", error)
            decoded.logged = True
