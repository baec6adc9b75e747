"""A source without some of its classes."""

from dataclasses import dataclass

import pytest

from kshot.encode.sources.source import Listed, Picture, Shard, Source
from kshot.encode.sources.without import without_classes
from kshot.errors import InputError

CLASSES = ("ant", "background", "cup")
ROWS = [Picture("pool", f"{n}.png", n % 3, lambda: None) for n in range(9)]


@dataclass(frozen=True)
class Streamed:
    origin: str = "there"
    classes: tuple[str, ...] = CLASSES
    templates: tuple[str, ...] = ()

    def shards(self):
        return [Shard("pool", "0")]

    def pictures(self, shard):
        yield from ROWS


@pytest.mark.parametrize("source", [Listed("there", CLASSES, ROWS), Streamed()], ids=["listed", "streamed"])
def test_the_other_classes_keep_their_pictures_and_order(source):
    rest = without_classes(source, ["background"])
    assert isinstance(rest, Source)
    assert rest.classes == ("ant", "cup")
    kept = {p.id: rest.classes[p.label] for shard in rest.shards() for p in rest.pictures(shard)}
    assert kept == {row.id: CLASSES[row.label] for row in ROWS if row.label != 1}


def test_nothing_left_out_is_the_source_and_an_unknown_class_is_named():
    assert without_classes(Streamed(), []) == Streamed()
    with pytest.raises(InputError, match="background"):
        without_classes(Streamed(), ["backgrund"])
