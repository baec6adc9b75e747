"""OpenClipart from Debian: folders that directly hold enough pictures are the classes."""

from pathlib import Path

from kshot.encode.open.fetch import debian_package
from kshot.encode.open.openset import Listing, OpenSet, classes_from_folders, words

MOST_PIXELS = 20_000_000
# Icon themes, card decks and catch-all folders name a style or nothing, not what a picture shows; the four decks
# and the themes also redraw each other's pictures.
WITHOUT_MEANING = ("computer/icons", "recreation/games/cards", "unsorted", "special", "shapes/stars")


def listing(package: Path) -> Listing:
    root = package / "usr/share/openclipart/png"
    folders = [
        folder
        for folder in root.rglob("*")
        if folder.is_dir() and not folder.relative_to(root).as_posix().startswith(WITHOUT_MEANING)
    ]
    groups = (
        (_class_name(root, folder), [path for path in folder.glob("*.png") if _is_moderate(path)]) for folder in folders
    )
    return classes_from_folders(root, groups)


def _is_moderate(path: Path) -> bool:
    """A few drawings were exported at more than a hundred million pixels; a PNG says so in its first bytes."""
    with path.open("rb") as file:
        header = file.read(24)
    width, height = (int.from_bytes(header[start : start + 4], "big") for start in (16, 20))
    return width * height <= MOST_PIXELS


def _class_name(root: Path, folder: Path) -> str:
    """The folder's own name; flags keep theirs, since a continent alone names no picture."""
    relative = folder.relative_to(root)
    if "flags" in relative.parts[:-1]:
        return f"flags of {words(folder.name)}"
    return words(folder.name)


SET = OpenSet(
    name="openclipart",
    unpack=lambda downloads: debian_package("openclipart-png", downloads),
    listing=listing,
    per_class={"all": 34},
    most_classes=36,
)
