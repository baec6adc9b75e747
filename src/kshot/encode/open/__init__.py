"""Open picture sets, made from packages of npm and Debian: all of them by name."""

from kshot.encode.open import drawings, small
from kshot.encode.open.openset import OpenSet
from kshot.errors import KshotError, unknown

SETS: dict[str, OpenSet] = {one.name: one for one in sorted((*drawings.SETS, *small.SETS), key=lambda one: one.name)}


def open_set(name: str) -> OpenSet:
    if name not in SETS:
        raise KshotError(unknown("open set", name, SETS, "List them with `kshot open ls`."))
    return SETS[name]
