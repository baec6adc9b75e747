"""Writing files whole or not at all, and noticing when they were changed afterwards.

The only module with a branch for an operating system.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kshot.errors import KshotError
from kshot.types import Array

TEMPORARY_PREFIX = ".tmp-"
# Seconds; what was begun so long ago is nobody's work in progress.
LONGEST_WRITE = 86_400
# File systems take 255; temporaries and suffixes need some of it.
LONGEST_NAME = 120
# Names of devices, which no folder can be shared with that holds them as files.
OF_WINDOWS = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def safe_name(kind: str, name: str) -> str:
    """A name that can stand in a path; anything else never reaches the disk."""
    if not isinstance(name, str):
        raise KshotError(f"{kind} {name!r:.80} is no name; give it in quotes.")
    reserved = name.partition(".")[0].lower() in OF_WINDOWS or name.endswith(".")
    if not _SAFE.fullmatch(name) or ".." in name or len(name) > LONGEST_NAME or reserved:
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


def real_path(path: Path) -> Path:
    """Where it leads through all links; `Path.resolve` ends in an error of its own where they run in a circle."""
    return Path(os.path.realpath(path))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_torn(folder: Path) -> int:
    """Delete temporaries that killed processes left behind a day ago or longer; return how many there were."""
    old = time.time() - LONGEST_WRITE
    torn = [path for path in folder.rglob(f"{TEMPORARY_PREFIX}*") if path.is_file() and path.stat().st_mtime < old]
    for path in torn:
        path.unlink(missing_ok=True)
    return len(torn)


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
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{path.suffix}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return temporary


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk. Windows flushes no folders, and files only through
    a handle that may write."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
