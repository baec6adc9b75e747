"""Editing an album: any sequence of changes, undone step by step, leads back through the same pictures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.apply.encoded import Encoded
from kshot.apply.serve.album import MOST_UNDONE, Album, AlbumPicture
from kshot.errors import InputError

CLASSES = ("cat", "dog", "owl")


def encoded(name):
    return Encoded(name, np.zeros(2, np.float32), b"")


def start():
    return Album(
        CLASSES, tuple(AlbumPicture(f"{row}", f"{row}.png", row % 3, encoded(f"{row}")) for row in range(9))
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "move", "remove"]), st.integers(0, 12), st.sampled_from(CLASSES)),
        max_size=20,
    )
)
def test_undo_leads_back_through_every_step(steps):
    albums = [start()]
    for what, number, label in steps:
        now = albums[-1]
        try:
            if what == "add":
                albums.append(now.add(encoded(f"{number}"), label))
            elif what == "move":
                albums.append(now.move([f"{number}"], label))
            else:
                albums.append(now.remove([f"{number}"]))
        except InputError:
            continue
        after = albums[-1]
        assert min(after.counts()) > 0
        contents = [(one.encoded.sha256, one.label) for one in after.pictures]
        assert len(set(contents)) == len(contents)
        assert sum(after.counts()) - sum(now.counts()) == {"add": 1, "move": 0, "remove": -1}[what]
    last = albums[-1]
    for before in reversed(albums[:-1]):
        last = last.undo()
        assert last.pictures == before.pictures
    with pytest.raises(InputError, match="nothing to undo"):
        last.undo()


def test_old_steps_are_forgotten():
    album = start()
    for number in range(MOST_UNDONE + 5):
        album = album.move(["0"], CLASSES[number % 2])
    assert len(album.past) == MOST_UNDONE


def test_the_same_content_in_two_classes_is_two_pictures_that_never_meet():
    album = Album(CLASSES[:2], (*start().pictures[:2], AlbumPicture("0-1", "copy.png", 1, encoded("0"))))
    with pytest.raises(InputError, match="has this picture already"):
        album.move(["0-1"], "cat")
