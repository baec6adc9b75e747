"""A release: features, records, probes and reports in one tar file, with a checksum of every file in front."""

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from kshot.errors import KshotError
from kshot.files import TEMPORARY_PREFIX, is_temporary, real_path, sha256, write_atomically

CHECKSUMS = "checksums.json"
FORMAT = 1


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
    """Open a release in a folder that does not exist yet: every file as its checksum says, or nothing; the number of
    files."""
    if target.exists():
        raise KshotError(f"{target} exists already; give a folder that does not.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=target.parent) as making:
        inside = Path(making, "release")
        try:
            with tarfile.open(archive, "r:") as tar:
                _extract(tar, inside)
        except (tarfile.TarError, OSError) as error:
            raise KshotError(f"{archive} cannot be opened as a release ({error}).") from None
        listed = _read_list(inside / CHECKSUMS, archive)
        found = {path.relative_to(inside).as_posix(): path for path in inside.rglob("*") if path.is_file()}
        for name in sorted(listed.keys() | found.keys()):
            if name not in found or name not in listed or sha256(found[name]) != listed[name]:
                raise KshotError(f"{name} in {archive} is damaged, missing, or not one of the files that it lists.")
        inside.rename(target)
    return len(found)


def _extract(tar: tarfile.TarFile, folder: Path) -> None:
    """Write the archive's files, which must lie below the folder."""
    for member in tar:
        name = PurePosixPath(member.name)
        content = tar.extractfile(member) if member.isfile() else None
        if content is None or name.is_absolute() or ".." in name.parts:
            raise tarfile.TarError(f"{name} is not a file below the release")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            shutil.copyfileobj(content, out)


def _read_list(path: Path, archive: Path) -> dict[str, str]:
    """The checksum of every file, read and removed."""
    try:
        content = json.loads(path.read_bytes())
        path.unlink()
        if content["format"] == FORMAT:
            return {name: entry["sha256"] for name, entry in content["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise KshotError(f"{archive} is no release that this kshot reads: its {CHECKSUMS} is missing, damaged or newer.")


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """All files with their names in the archive, but for hidden ones, links, and those that are still being written."""
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
