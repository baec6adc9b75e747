"""Fetch packages by name with the machine's npm and apt."""

import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from kshot.errors import KshotError
from kshot.files import TEMPORARY_PREFIX


def npm_package(name: str, version: str, downloads: Path) -> Path:
    """Fetch and unpack an npm package; return its folder."""

    def unpack(folder: Path) -> None:
        printed = _run(["npm", "pack", f"{name}@{version}", "--silent"], folder, "npm")
        archive = folder / printed.strip().splitlines()[-1]
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()

    flat = name.replace("/", "-").removeprefix("@")
    return _unpacked(downloads / f"npm-{flat}-{version}", unpack) / "package"


def debian_package(name: str, downloads: Path) -> Path:
    """Fetch and unpack a Debian package without installing it; return its folder."""

    def unpack(folder: Path) -> None:
        _run(["apt-get", "download", name], folder, "apt-get (on Debian or a relative of it)")
        archive = max(folder.glob(f"{name}_*.deb"))
        _run(["dpkg-deb", "-x", archive.name, "."], folder, "dpkg-deb")
        archive.unlink()

    return _unpacked(downloads / f"debian-{name}", unpack)


def _unpacked(folder: Path, unpack: Callable[[Path], None]) -> Path:
    """Unpack under a temporary name, then rename, so that a folder that exists is complete."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=folder.parent) as making:
            inside = Path(making, "package")
            inside.mkdir()
            unpack(inside)
            # Another process may have been faster; its folder is as good.
            if not folder.is_dir():
                inside.rename(folder)
    return folder


def _run(command: list[str], folder: Path, client: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise KshotError(f"this set is fetched by {client}, which is not on this machine.") from None
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise KshotError(f"`{' '.join(command)}` failed: {reason}") from None
    return done.stdout
