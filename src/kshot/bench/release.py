"""A release: features, records, probes and reports in one tar file, with a checksum of every file in front."""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from kshot.errors import KshotError
from kshot.files import TEMPORARY_PREFIX, is_temporary, real_path, sha256, write_atomically

CHECKSUMS = "checksums.json"
FORMAT = 1
LARGEST_LIST = 2**28
CHUNK = 2**20


def write_release(folders: Sequence[Path], archive: Path) -> int:
    """Write the folders, each under its own name, into one archive; the number of files."""
    names = [real_path(folder).name for folder in folders]
    if len(set(names)) < len(names):
        raise KshotError(f"two of the folders have one name: {', '.join(names)}. Rename one.")
    files = {name: path for folder in folders for name, path in _files(folder)}
    if not files:
        raise KshotError(f"there are no files in {', '.join(map(str, folders))}; no release was written.")
    listed = {name: {"sha256": sha256(path), "size": path.stat().st_size} for name, path in files.items()}
    content = json.dumps({"format": FORMAT, "files": listed}, indent=1, sort_keys=True).encode()

    def write(temporary: Path) -> None:
        with tarfile.open(temporary, "w") as tar:
            tar.addfile(_entry(CHECKSUMS, len(content)), io.BytesIO(content))
            for name, path in files.items():
                with path.open("rb") as opened:
                    tar.addfile(_entry(name, listed[name]["size"]), opened)

    write_atomically(archive, write)
    return len(files)


def open_release(archive: Path, target: Path) -> int:
    """Open a release in a folder that does not exist yet: every file as its checksum says, or nothing."""
    if target.exists():
        raise KshotError(f"{target} exists already; give a folder that does not.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=target.parent) as making:
        inside = Path(making, "release")
        inside.mkdir()
        try:
            with tarfile.open(archive, "r:") as tar:
                count = _extract(tar, inside, archive)
        except (tarfile.TarError, OSError) as error:
            raise KshotError(f"{archive} cannot be opened as a release ({error}).") from None
        inside.rename(target)
    return count


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """All files but hidden ones, links, and those that are still being written."""
    if not folder.is_dir():
        raise KshotError(f"there is no folder {folder} to pack.")
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.is_file() and not path.is_symlink() and not hidden and not is_temporary(path):
            yield f"{real_path(folder).name}/{inside.as_posix()}", path


def _entry(name: str, size: int) -> tarfile.TarInfo:
    """Header of one file, without owner and time, so that the same files make the same archive."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry


def _extract(tar: tarfile.TarFile, folder: Path, archive: Path) -> int:
    first = tar.next()
    if first is None or first.name != CHECKSUMS or not first.isfile() or first.size > LARGEST_LIST:
        raise KshotError(f"{archive} is no release: it does not begin with {CHECKSUMS}.")
    listed = _read_list(tar.extractfile(first), archive)
    while (member := tar.next()) is not None:
        expected = listed.pop(member.name, None)
        if expected is None or not member.isfile() or member.size != expected["size"]:
            raise KshotError(f"{archive} holds {member.name}, which is not the file that its {CHECKSUMS} lists.")
        target = folder / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            copied = _copy(tar.extractfile(member), out)
        if copied != expected["sha256"]:
            raise KshotError(f"{member.name} in {archive} is damaged: sha256 {copied}, listed {expected['sha256']}.")
    if listed:
        raise KshotError(f"{archive} lacks {len(listed)} of its files, first {min(listed)}.")
    return sum(1 for path in folder.rglob("*") if path.is_file())


def _read_list(opened: Any, archive: Path) -> dict[str, dict[str, Any]]:
    try:
        content = json.loads(opened.read() if opened else b"")
        listed = content["files"]
        sound = content["format"] == FORMAT and all(
            type(entry["size"]) is int and isinstance(entry["sha256"], str) for entry in listed.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound, listed = False, {}
    if not sound:
        raise KshotError(f"{archive} is no release that this kshot reads: its {CHECKSUMS} is damaged or newer.")
    for name in listed:
        path = PurePosixPath(name)
        if path.is_absolute() or "\\" in name or path.as_posix() != name or not path.parts or ".." in path.parts:
            raise KshotError(f"{archive} lists '{name}', which does not lie below the release.")
    return listed


def _copy(source: Any, out: Any) -> str:
    digest = hashlib.sha256()
    while source is not None and (chunk := source.read(CHUNK)):
        digest.update(chunk)
        out.write(chunk)
    return digest.hexdigest()
