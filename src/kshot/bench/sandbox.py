"""A process that cannot read certain folders any more, nor write anywhere: Linux' Landlock, where it is offered."""

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

CREATE, ADD, RESTRICT = 444, 445, 446
NO_NEW_PRIVILEGES = 38
# Of linux/landlock.h: what may be done with files, and what only with folders.
WRITE_FILE, READ_FILE, READ_FOLDER = 1 << 1, 1 << 2, 1 << 3
CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
HANDLED = WRITE_FILE | READ_FILE | READ_FOLDER | CHANGE_FOLDER
MACHINE = ("/dev", "/proc", "/sys")


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def shut_out(folders: Sequence[Path]) -> bool:
    """From now on this process and its children read no file below `folders` and write to a folder of their own only.

    False where the system has no such sandbox; then nothing is restricted.
    """
    if sys.platform != "linux":
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    handled = ctypes.c_uint64(HANDLED)
    rules = call(CREATE, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if rules < 0:
        return False
    tempfile.tempdir = tempfile.mkdtemp(prefix="kshot-alone-")
    for path in _all_but([folder.resolve() for folder in folders], Path("/")):
        _allow(call, rules, path, READ_FILE)
    # Names may be read everywhere: imports look into the folders above a module, which may hold hidden ones too.
    _allow(call, rules, Path("/"), READ_FOLDER)
    for path in (tempfile.tempdir, *MACHINE):
        _allow(call, rules, Path(path), HANDLED)
    done = ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and call(RESTRICT, rules, 0) == 0
    os.close(rules)
    return done


def _all_but(forbidden: Sequence[Path], place: Path) -> Iterable[Path]:
    """The largest files and folders that hold none of the forbidden ones."""
    if place in forbidden:
        return
    if not any(folder.is_relative_to(place) for folder in forbidden):
        yield place
        return
    try:
        inside = sorted(place.iterdir())
    except OSError:
        return
    for path in inside:
        if not path.is_symlink():
            yield from _all_but(forbidden, path)


def _allow(call, rules: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    call(ADD, rules, 1, ctypes.byref(_Rule(rights, handle)), 0)
    os.close(handle)
