"""Open picture sets, fetched from packages: all of them by name."""

from kshot.encode.open import cifar10, digits, emoji, fashion_mnist, openclipart, quickdraw, tuxpaint
from kshot.encode.open.openset import OpenSet
from kshot.errors import KshotError, unknown

SETS: dict[str, OpenSet] = {
    module.SET.name: module.SET for module in (cifar10, digits, emoji, fashion_mnist, openclipart, quickdraw, tuxpaint)
}


def open_set(name: str) -> OpenSet:
    if name not in SETS:
        raise KshotError(unknown("open set", name, SETS, "List them with `kshot ls open`."))
    return SETS[name]
