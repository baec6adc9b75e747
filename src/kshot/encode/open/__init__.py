"""Open picture sets, made from packages of npm and Debian: all of them by name."""

from kshot.encode.open import cifar10, clipart, emoji, greys
from kshot.encode.open.openset import OpenSet
from kshot.errors import KshotError, unknown

SETS: dict[str, OpenSet] = {
    one.name: one for one in sorted((cifar10.SET, emoji.SET, *clipart.SETS, *greys.SETS), key=lambda one: one.name)
}


def open_set(name: str) -> OpenSet:
    if name not in SETS:
        raise KshotError(unknown("open set", name, SETS, "List them with `kshot open ls`."))
    return SETS[name]
