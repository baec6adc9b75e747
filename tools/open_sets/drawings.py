"""Drawings: OpenClipart and Tux Paint's stamps from Debian, whose folders are the classes, and emoji from npm.

The same emoji drawn twice is nearly the same picture. So an emoji is either in the pool or in the test part, and
vendors are kept apart as well: Google and Twitter draw the pool, Microsoft's Fluent draws the test.
"""

import json
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tools.open_sets.fetch import debian_package, npm_package
from tools.open_sets.openset import Listing, OpenSet, hash_rank

from kshot.encode.pictures import decode
from kshot.encode.sources.source import Picture

# A class of 31 keeps 21 in the pool at 68 %: sixteen shots and the residue of five that the protocol asks for.
LEAST_PICTURES = 31
MOST_PIXELS = 20_000_000
# Icon themes, card decks and catch-all folders name a style or nothing, not what a picture shows; the four decks
# and the themes also redraw each other's pictures.
WITHOUT_MEANING = ("computer/icons", "recreation/games/cards", "unsorted", "special", "shapes/stars")
EMOJI_VERSION, FLUENT_VERSION = "16.0.0", "1.1.0"
POOL_VENDORS = ("google", "twitter")
POOL_SHARE = 0.68
# Eleven pool emoji drawn by two vendors make 22 pictures: sixteen shots and a residue of at least five.
LEAST_EMOJI = 16


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
    """Whether a PNG has at most 20 million pixels by its header; a few drawings have more than a hundred million."""
    with path.open("rb") as file:
        header = file.read(24)
    width, height = (int.from_bytes(header[start : start + 4], "big") for start in (16, 20))
    return width * height <= MOST_PIXELS


def _class_name(root: Path, folder: Path) -> str:
    """The folder's name; with `flags of` in front for the continents below `flags`."""
    name = _words(folder.name)
    return f"flags of {name}" if "flags" in folder.relative_to(root).parts[:-1] else name


def _words(folder: str) -> str:
    return re.sub(r"[_-]+", " ", folder)


def fetch_emoji(downloads: Path) -> Path:
    for vendor in POOL_VENDORS:
        npm_package(f"emoji-datasource-{vendor}", EMOJI_VERSION, downloads)
    npm_package("@lobehub/fluent-emoji-3d", FLUENT_VERSION, downloads)
    return downloads


def list_emoji(downloads: Path) -> Listing:
    vendors = {v: downloads / f"npm-emoji-datasource-{v}-{EMOJI_VERSION}/package" for v in POOL_VENDORS}
    fluent = downloads / f"npm-lobehub-fluent-emoji-3d-{FLUENT_VERSION}/package/assets"
    groups: dict[str, list[dict]] = {}
    for emoji in json.loads((vendors["google"] / "emoji.json").read_text(encoding="utf-8")):
        # Joined sequences are genders and families of an emoji that is there already.
        drawn = all(emoji[f"has_img_{vendor}"] for vendor in POOL_VENDORS)
        if "200D" not in emoji["unified"] and drawn and _fluent(fluent, emoji).is_file():
            groups.setdefault(emoji["subcategory"], []).append(emoji)
    classes = tuple(sorted(name for name, own in groups.items() if len(own) >= LEAST_EMOJI))
    pictures = []
    for label, name in enumerate(classes):
        order = sorted(groups[name], key=lambda emoji: hash_rank("emoji", emoji["unified"]))
        border = round(POOL_SHARE * len(order))
        for emoji in order[:border]:
            for vendor, folder in vendors.items():
                path = folder / "img" / vendor / "64" / emoji["image"]
                pictures.append(_emoji("pool", vendor, emoji, label, path))
        pictures += [_emoji("test", "fluent", e, label, _fluent(fluent, e)) for e in order[border:]]
    return Listing(tuple(_subgroup_words(name) for name in classes), pictures)


def _emoji(part: str, vendor: str, emoji: dict, label: int, path: Path) -> Picture:
    return Picture(part, f"{vendor}/{emoji['unified'].lower()}", label, partial(decode, path, path.name))


def _fluent(assets: Path, emoji: dict) -> Path:
    """Fluent's file names drop leading zeros."""
    return assets / f"{emoji['unified'].lower().lstrip('0')}.webp"


def _subgroup_words(subgroup: str) -> str:
    """`food-fruit` as words, the more specific one first: `fruit food`."""
    words = subgroup.replace(" & ", " and ").split("-")
    return " ".join(reversed(words)) if words[0] in ("animal", "food", "face", "plant", "place") else " ".join(words)


SETS = (
    OpenSet("emoji", fetch_emoji, list_emoji, {"pool": 24, "test": 12}),
    OpenSet("openclipart", partial(debian_package, "openclipart-png"), list_openclipart, {"all": 34}, most_classes=36),
    OpenSet("tuxpaint", partial(debian_package, "tuxpaint-stamps-default"), list_tuxpaint, {"all": 50}),
)
