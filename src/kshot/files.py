"""Writing files whole or not at all, and noticing when they were changed afterwards.

Tables lie in FOLDER/PLACE.DIGEST.parquet, DIGEST being a hash of place and content: one rename puts both in place, and
two processes that write one place at once write two files.
"""

import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kshot.errors import KshotError
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

TEMPORARY_PREFIX = ".tmp-"
LOCK_PREFIX = ".lock-"
# File systems take 255; temporaries and suffixes need some of it.
LONGEST_NAME = 120
# Hex digits of the sha256 in the name of a table's file.
DIGITS = 16
DAMAGED = "damaged"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")

log = logging.getLogger(__name__)
_warned: set[Path] = set()


def safe_name(kind: str, name: str) -> str:
    """A name that can stand in a path; anything else never reaches the disk."""
    if not isinstance(name, str):
        raise KshotError(f"{kind} {name!r:.80} is no name; give it in quotes.")
    if not _SAFE.fullmatch(name) or ".." in name or len(name) > LONGEST_NAME:
        shown = name if len(name) <= LONGEST_NAME else f"{name[:40]}…"
        raise KshotError(
            f"{kind} '{shown}' cannot be a file name; use at most {LONGEST_NAME} letters, digits and . _ + - only."
        )
    return name


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary name beside `path`, then rename it into place.

    File and folder are flushed to disk, so a crash leaves the old file or the new one. The new file has the mode of
    the old one, or what the umask says; a link stays a link.
    """
    temporary = None
    try:
        path = real_path(path) if path.is_symlink() else path
        path.parent.mkdir(parents=True, exist_ok=True)
        # What only its owner may read is not open to others while it is written.
        temporary = _new_temporary(path, 0o600 if path.exists() else 0o666)
        write(temporary)
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        _flush(temporary)
        temporary.replace(path)
        _flush(path.parent)
    except OSError as error:
        raise KshotError(_cannot_write(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_hashed(path: Path, write: Callable[[Path], object], before_rename: Callable[[str], object]) -> str:
    """`write_atomically`, returning the sha256 of the new file; `before_rename` gets it first and may raise."""
    digest = ""

    def write_and_hash(temporary: Path) -> None:
        nonlocal digest
        write(temporary)
        digest = sha256(temporary)
        before_rename(digest)

    write_atomically(path, write_and_hash)
    return digest


def write_bytes(path: Path, content: bytes) -> None:
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time may change what lies at `path`; others wait. The system frees the lock of a killed one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(f"{LOCK_PREFIX}{path.name}"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise KshotError(_cannot_write(path, error)) from error
    try:
        # Some network file systems know no locks; there, whole files and their hashes have to do.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def real_path(path: Path) -> Path:
    """Where it leads through all links; `Path.resolve` ends in an error of its own where they run in a circle."""
    return Path(os.path.realpath(path))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_torn(folder: Path) -> int:
    """Delete temporaries that killed processes of this machine left behind; return how many there were.

    Files of living processes and of other machines are somebody's work in progress.
    """
    removed = 0
    ours = f"{TEMPORARY_PREFIX}{_host()}-"
    for path in folder.rglob(f"{ours}*"):
        owner = path.name.removeprefix(ours).split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def is_temporary(path: Path) -> bool:
    """Whether it is a lock, a file in the making, or what a killed process left of one."""
    return path.name.startswith((TEMPORARY_PREFIX, LOCK_PREFIX))


def write_table(table: "pa.Table", folder: Path, place: str) -> Path:
    """Write a table whole; what was written at the same place before stays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, write_statistics=False)
    content = sink.getvalue().to_pybytes()
    path = folder / f"{place}.{_digest(place, content)}.parquet"
    if not path.is_file() or is_damaged(folder, path):
        write_bytes(path, content)
    return path


def replace_table(table: "pa.Table", folder: Path, place: str) -> None:
    """Write a table whole, then remove what was written at the same place before."""
    now = _changed(write_table(table, folder, place))
    # Not a newer one: of two processes that write at once, neither removes the other's last file.
    for other in files_at(folder, place):
        if _changed(other) < now:
            other.unlink(missing_ok=True)


def files_at(folder: Path, place: str) -> list[Path]:
    """Files written at this place, the newest last."""
    return sorted(folder.glob(f"{place}.*.parquet"), key=lambda path: (_changed(path), path))


def place_of(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix().rsplit(".", 2)[0]


def read_tables(paths: Sequence[Path], schema: "pa.Schema", columns: Sequence[str] | None = None) -> "pa.Table":
    """The rows of the files in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = list(columns or schema.names)
    # `read_table` and `empty_table` would import pandas where that is installed, which takes longer than reading.
    tables = [pa.Table.from_batches([], schema).select(wanted)]
    for path in paths:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            tables.append(file.read([name for name in wanted if name in file.schema_arrow.names]))
    return pa.concat_tables([table.replace_schema_metadata() for table in tables], promote_options="default")


def intact_only(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """The files that are as they were written; the others are named in a warning, and count as missing."""
    return [path for path in paths if not is_damaged(folder, path)]


def is_damaged(folder: Path, path: Path) -> bool:
    """Whether content or place are not those the file was written with; False if another process removed it."""
    try:
        about = path.stat()
        damaged = not _fits_its_name(folder, path, about.st_ino, about.st_size, about.st_mtime_ns)
    except FileNotFoundError:
        return False
    if damaged and path not in _warned:
        _warned.add(path)
        log.warning("%s is damaged and counts as missing; `kshot run` computes its cells again.", path)
    return damaged


def set_aside(folder: Path, path: Path) -> Path:
    """Move a damaged file out of all readers' way, under a name that shows where it was."""
    target = folder / DAMAGED / re.sub(r"[^A-Za-z0-9._+-]", "-", str(path.relative_to(folder)))
    target.parent.mkdir(exist_ok=True)
    path.replace(target)
    log.warning("It is kept as %s.", target)
    return target


def seal_tensors(tensors: Mapping[str, Array], about: Mapping[str, Any]) -> bytes:
    """A safetensors file with `about` as JSON in its header, beside a hash of that JSON and of the arrays."""
    from safetensors.numpy import save

    text = json.dumps(about, ensure_ascii=False, sort_keys=True)
    arrays = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    return save(arrays, {"kshot": text, "sha256": _tensor_digest(text, arrays)})


def read_about(content: bytes) -> dict[str, Any]:
    """The JSON in the header, whether or not the file is whole; ValueError where there is none."""
    about = json.loads(_metadata(content, "kshot"))
    if not isinstance(about, dict):
        raise ValueError("its header holds no names")
    return about


def unseal_tensors(content: bytes) -> dict[str, Array]:
    """The arrays of a file that `seal_tensors` made; ValueError where one byte of it is not as it was."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    changed = ValueError("it was changed after it was written")
    try:
        text, digest, arrays = _metadata(content, "kshot"), _metadata(content, "sha256"), load(content)
    except (ValueError, KeyError, SafetensorError) as error:
        raise changed from error
    if digest != _tensor_digest(text, arrays):
        raise changed
    return arrays


def json_seal(content: Mapping[str, Any]) -> str:
    """A hash of everything that JSON says, but for its own seal."""
    rest = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _new_temporary(path: Path, mode: int) -> Path:
    """An empty file of our own beside `path`, with what the umask leaves of the mode."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{_host()}-{os.getpid()}-{secrets.token_hex(6)}{path.suffix}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return temporary


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _host() -> str:
    return "".join(c for c in socket.gethostname() if c.isalnum())


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _cannot_write(path: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"the disk is full: cannot write {path}. Free some space and run the same command again."
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"no permission to write {path}. Make {path.parent} writable or choose another folder."
    return f"cannot write {path}: {error.strerror or error}."


def _metadata(content: bytes, name: str) -> str:
    """One entry of a safetensors header, whose library reads them from files only."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    try:
        return str(header["__metadata__"][name])
    except (KeyError, TypeError) as error:
        raise ValueError("its header says nothing of kshot") from error


def _tensor_digest(about: str, tensors: Mapping[str, Array]) -> str:
    state = hashlib.sha256(about.encode())
    for name, value in sorted(tensors.items()):
        state.update(f"\0{name} {value.dtype} {value.shape}\0".encode())
        state.update(value.tobytes())
    return state.hexdigest()


@lru_cache(maxsize=20_000)
def _fits_its_name(folder: Path, path: Path, inode: int, size: int, changed: int) -> bool:
    place = place_of(folder, path)
    return path.name == f"{place.rpartition('/')[2]}.{_digest(place, path.read_bytes())}.parquet"


def _digest(place: str, content: bytes) -> str:
    return hashlib.sha256(place.encode() + b"\0" + content).hexdigest()[:DIGITS]


def _changed(path: Path) -> int:
    """Nanoseconds; 0 if another process removed the file."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return 0
