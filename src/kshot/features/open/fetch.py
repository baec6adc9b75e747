"""Packages by name through the machine's own clients: npm and apt."""

import subprocess
import tarfile
from pathlib import Path

from kshot.errors import KshotError


def npm_package(name: str, version: str, downloads: Path) -> Path:
    """The unpacked folder of an npm package."""
    folder = downloads / f"npm-{name.replace('/', '-').removeprefix('@')}-{version}"
    if not (folder / "package" / "package.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        printed = _run(["npm", "pack", f"{name}@{version}", "--silent"], folder, "npm")
        archive = folder / printed.strip().splitlines()[-1]
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()
    return folder / "package"


def debian_package(name: str, downloads: Path) -> Path:
    """The unpacked folder of a Debian package, without installing it."""
    folder = downloads / f"debian-{name}"
    if not (folder / "usr").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", name], folder, "apt-get (on Debian or a relative of it)")
        archive = max(folder.glob(f"{name}_*.deb"))
        _run(["dpkg-deb", "-x", archive.name, "."], folder, "dpkg-deb")
        archive.unlink()
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
