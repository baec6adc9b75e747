"""Open picture sets, made from packages of npm and Debian: all of them by name."""

from tools.open_sets import drawings, small
from tools.open_sets.openset import OpenSet

SETS: dict[str, OpenSet] = {one.name: one for one in sorted((*drawings.SETS, *small.SETS), key=lambda one: one.name)}
