"""Tux Paint's stamps from Debian: the topmost folders are the classes."""

from pathlib import Path

from kshot.encode.open.fetch import debian_package
from kshot.encode.open.openset import Listing, OpenSet, classes_from_folders, words


def listing(package: Path) -> Listing:
    """PNG stamps only; a stamp's mirrored twin would be a near-duplicate."""
    root = package / "usr/share/tuxpaint/stamps"
    groups = (
        (words(folder.name), [p for p in folder.rglob("*.png") if "mirror" not in p.stem and "flip" not in p.stem])
        for folder in root.iterdir()
        if folder.is_dir()
    )
    return classes_from_folders(root, groups)


SET = OpenSet(
    name="tuxpaint",
    unpack=lambda downloads: debian_package("tuxpaint-stamps-default", downloads),
    listing=listing,
    per_class={"all": 50},
)
