"""The wheel in a submission: made from a method's source files, and looked into without running anything of it."""

import base64
import hashlib
import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from kshot.errors import KshotError
from kshot.files import write_atomically
from kshot.methods.sources import SUFFIXES, code_hash

LARGEST = 2**25
LARGEST_OPENED = 2**27
MOST_FILES = 2000
TAG = "py3-none-any"
# The earliest day that zip can store; a fixed one makes the same files the same wheel.
EARLIEST_DAY = (1980, 1, 1, 0, 0, 0)
BUILD_FILES = ("setup.py", "setup.cfg", "pyproject.toml")


def write_wheel(path: Path, name: str, files: Mapping[str, Path]) -> None:
    """Write a wheel of these modules and packages; the same files give the same bytes."""
    info = f"{name}-0.dist-info"
    contents = {where: file.read_bytes() for where, file in sorted(files.items())}
    contents[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n".encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: kshot\nRoot-Is-Purelib: true\nTag: {TAG}\n".encode()
    rows = [f"{where},sha256={_short(content)},{len(content)}" for where, content in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for where, content in contents.items():
                archive.writestr(zipfile.ZipInfo(where, EARLIEST_DAY), content, zipfile.ZIP_DEFLATED)

    write_atomically(path, write)


def check_wheel(path: Path, use: str) -> set[str]:
    """Refuse anything but plain modules. Return the two hashes that its code may have: of all its source files, and of
    those of the method's package."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _looked_into(archive, path.name, use)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, EOFError, RuntimeError, ValueError) as error:
        raise KshotError(f"{path.name} is no whole wheel ({error}).") from None


def _looked_into(archive: zipfile.ZipFile, wheel: str, use: str) -> set[str]:
    entries = archive.infolist()
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > LARGEST_OPENED:
        raise KshotError(f"{wheel} holds more than {MOST_FILES} files or opens to more than {LARGEST_OPENED:,} bytes.")
    names = [entry.filename for entry in entries]
    if len({name.casefold() for name in names}) < len(names):
        raise KshotError(f"{wheel} holds two files of one name.")
    digests = {}
    for entry in entries:
        _check_place(entry, wheel)
        if not entry.is_dir():
            digests[entry.filename] = hashlib.sha256(archive.read(entry)).hexdigest()
    if not any(name.endswith(".dist-info/WHEEL") for name in names):
        raise KshotError(f"{wheel} is no wheel: it has no dist-info/WHEEL.")
    top = use.partition(":")[0].partition(".")[0]
    if not {f"{top}.py", f"{top}/__init__.py"} & set(names):
        raise KshotError(f"{wheel} does not hold {top}, the module of {use}.")
    sources = {name: digest for name, digest in digests.items() if name.endswith(SUFFIXES)}
    own = {name: digest for name, digest in sources.items() if name == f"{top}.py" or name.startswith(f"{top}/")}
    return {code_hash(sources), code_hash(own)}


def _check_place(entry: zipfile.ZipInfo, wheel: str) -> None:
    name = entry.filename
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and path.as_posix() == name.rstrip("/")
    if not inside or "\\" in name or not name.isprintable() or ":" in name:
        raise KshotError(f"{wheel} holds '{_shown(name)}', which does not lie below the wheel.")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise KshotError(f"{wheel} holds {name}, which is compressed in another way than wheels are.")
    kind = entry.external_attr >> 28
    if kind not in (0, 4, 8):
        raise KshotError(f"{wheel} holds {name}, which is a link or a device.")
    first = path.parts[0]
    if first in BUILD_FILES or first.endswith(".data") or path.suffix == ".pth":
        raise KshotError(f"{wheel} holds {name}: build scripts, programs and .pth files are not accepted.")
    top = first.removesuffix(".py")
    if top in sys.stdlib_module_names or top in ("kshot", "numpy", "scipy", "sklearn", "sitecustomize"):
        raise KshotError(f"{wheel} holds {first}, which would take the place of another library.")


def _short(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _shown(name: str) -> str:
    return name[:60].encode("unicode_escape").decode()
