"""Drawings in folders, from Debian: OpenClipart and Tux Paint's stamps. Folders are the classes."""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from kshot.encode.open.fetch import debian_package
from kshot.encode.open.openset import Listing, OpenSet
from kshot.encode.pictures import decode
from kshot.encode.sources.source import Picture

# A class of 31 keeps 21 in the pool at 68 %: sixteen shots and the residue of five that the protocol asks for.
LEAST_PICTURES = 31
MOST_PIXELS = 20_000_000
# Icon themes, card decks and catch-all folders name a style or nothing, not what a picture shows; the four decks
# and the themes also redraw each other's pictures.
WITHOUT_MEANING = ("computer/icons", "recreation/games/cards", "unsorted", "special", "shapes/stars")


def list_openclipart(package: Path) -> Listing:
    """Every folder that directly holds enough pictures is a class."""
    root = package / "usr/share/openclipart/png"
    folders = [
        folder
        for folder in root.rglob("*")
        if folder.is_dir() and not folder.relative_to(root).as_posix().startswith(WITHOUT_MEANING)
    ]
    groups = (
        (_class_name(root, folder), [path for path in folder.glob("*.png") if _is_moderate(path)]) for folder in folders
    )
    return _listing(root, groups)


def list_tuxpaint(package: Path) -> Listing:
    """The topmost folders are the classes; a stamp's mirrored twin is left out as a near-duplicate."""
    root = package / "usr/share/tuxpaint/stamps"
    groups = (
        (_words(folder.name), [p for p in folder.rglob("*.png") if "mirror" not in p.stem and "flip" not in p.stem])
        for folder in root.iterdir()
        if folder.is_dir()
    )
    return _listing(root, groups)


def _listing(root: Path, groups: Iterable[tuple[str, list[Path]]]) -> Listing:
    """Classes in the order of their names; those with too few pictures are left out."""
    kept = {name: sorted(files) for name, files in groups if len(files) >= LEAST_PICTURES}
    classes = tuple(sorted(kept))
    pictures = [
        Picture("all", path.relative_to(root).as_posix(), label, partial(decode, path, path.name))
        for label, name in enumerate(classes)
        for path in kept[name]
    ]
    return Listing(classes, pictures)


def _is_moderate(path: Path) -> bool:
    """A few drawings were exported at more than a hundred million pixels; a PNG says so in its first bytes."""
    with path.open("rb") as file:
        header = file.read(24)
    width, height = (int.from_bytes(header[start : start + 4], "big") for start in (16, 20))
    return width * height <= MOST_PIXELS


def _class_name(root: Path, folder: Path) -> str:
    """The folder's own name; `flags of` in front of continents."""
    name = _words(folder.name)
    return f"flags of {name}" if "flags" in folder.relative_to(root).parts[:-1] else name


def _words(folder: str) -> str:
    return re.sub(r"[_-]+", " ", folder)


SETS = (
    OpenSet("openclipart", partial(debian_package, "openclipart-png"), list_openclipart, {"all": 34}, most_classes=36),
    OpenSet("tuxpaint", partial(debian_package, "tuxpaint-stamps-default"), list_tuxpaint, {"all": 50}),
)
