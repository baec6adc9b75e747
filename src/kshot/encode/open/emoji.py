"""Emoji by Unicode subgroup, drawn by three vendors.

The same emoji drawn twice is nearly the same picture. So an emoji is either in the pool or in the test part, and
vendors are kept apart as well: Google and Twitter draw the pool, Microsoft's Fluent draws the test.
"""

import json
from functools import partial
from pathlib import Path

from kshot.encode.open.fetch import npm_package
from kshot.encode.open.openset import Listing, OpenSet, hash_rank
from kshot.encode.pictures import decode
from kshot.encode.sources.source import Picture

VERSION, FLUENT_VERSION = "16.0.0", "1.1.0"
POOL_VENDORS = ("google", "twitter")
POOL_SHARE = 0.68
# Eleven pool emoji drawn by two vendors make 22 pictures: sixteen shots and a residue of at least five.
LEAST_EMOJI = 16


def fetch_packages(downloads: Path) -> Path:
    for vendor in POOL_VENDORS:
        npm_package(f"emoji-datasource-{vendor}", VERSION, downloads)
    npm_package("@lobehub/fluent-emoji-3d", FLUENT_VERSION, downloads)
    return downloads


def list_emoji(downloads: Path) -> Listing:
    vendors = {v: downloads / f"npm-emoji-datasource-{v}-{VERSION}/package" for v in POOL_VENDORS}
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
                pictures.append(_picture("pool", vendor, emoji, label, path))
        pictures += [_picture("test", "fluent", e, label, _fluent(fluent, e)) for e in order[border:]]
    return Listing(tuple(_words(name) for name in classes), pictures)


def _picture(part: str, vendor: str, emoji: dict, label: int, path: Path) -> Picture:
    return Picture(part, f"{vendor}/{emoji['unified'].lower()}", label, partial(decode, path, path.name))


def _fluent(assets: Path, emoji: dict) -> Path:
    """Fluent's file names drop leading zeros."""
    return assets / f"{emoji['unified'].lower().lstrip('0')}.webp"


def _words(subgroup: str) -> str:
    """`food-fruit` as words, the more specific one first: `fruit food`."""
    words = subgroup.replace(" & ", " and ").split("-")
    return " ".join(reversed(words)) if words[0] in ("animal", "food", "face", "plant", "place") else " ".join(words)


SET = OpenSet("emoji", fetch_packages, list_emoji, {"pool": 24, "test": 12})
