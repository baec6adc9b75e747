"""Editing an album: any sequence of changes, undone step by step, leads back through the same pictures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.errors import InputError
from kshot.pictures.album import MOST_UNDONE, Album, AlbumPicture
from kshot.pictures.encoded import ClassText, Encoded

CLASSES = ("cat", "dog", "owl")


def encoded(name):
    return Encoded(name, np.zeros(2, np.float32), b"")


def text_of(name):
    """A text prototype of its own for each class."""
    return ClassText(np.array([sum(map(ord, name)), 1], np.float32), float(len(name)))


def start(classes=CLASSES):
    rows = range(3 * len(classes))
    pictures = (AlbumPicture(f"{r}", f"{r}.png", classes[r % len(classes)], encoded(f"{r}")) for r in rows)
    return Album({name: text_of(name) for name in classes}, tuple(pictures))


KINDS = ("add", "move", "remove", "add_class", "drop_class")


def changed(album, what, number, label):
    if what == "add":
        return album.add([encoded(f"{number}")], label, text_of(label))
    if what == "move":
        return album.move([f"{number}"], label, text_of(label))
    if what == "remove":
        return album.remove([f"{number}"])
    return album.add_class(label, text_of(label)) if what == "add_class" else album.drop_class(label)


@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, 12), st.sampled_from((*CLASSES, "elk", "fox"))), max_size=20
    )
)
def test_undo_leads_back_through_every_step(steps):
    albums = [start()]
    for what, number, label in steps:
        now = albums[-1]
        try:
            after = changed(now, what, number, label)
        except InputError:
            continue
        albums.append(after)
        had, has = now.counts(), after.counts()
        assert all(has[name] or not had.get(name) for name in has)
        assert len(after.classes) >= 2
        contents = [(one.encoded.sha256, one.label) for one in after.pictures]
        assert len(set(contents)) == len(contents)
        added = {"add": 1, "move": 0, "remove": -1, "add_class": 0, "drop_class": -had.get(label, 0)}[what]
        assert len(after.pictures) - len(now.pictures) == added
        shots = after.shots()
        assert [after.classes[number] for number in shots.y] == [one.label for one in after.pictures]
        assert shots.text.tolist() == [text_of(name).unit.tolist() for name in after.classes]
    last = albums[-1]
    for before in reversed(albums[:-1]):
        last = last.undo()
        assert (last.pictures, last.texts) == (before.pictures, before.texts)
    with pytest.raises(InputError, match="nothing to undo"):
        last.undo()


def test_old_steps_are_forgotten():
    album = start()
    for number in range(MOST_UNDONE + 5):
        album = album.move(["0"], CLASSES[number % 2])
    assert len(album.past) == MOST_UNDONE


def test_the_same_content_in_two_classes_is_two_pictures_that_never_meet():
    two = start(CLASSES[:2])
    copy = AlbumPicture("0-1", "copy.png", "dog", encoded("0"))
    album = Album(two.texts, (*two.pictures, copy))
    with pytest.raises(InputError, match="has this picture already"):
        album.move(["0-1"], "cat")


def test_pictures_come_together_and_copies_are_left_out():
    album = start().add([encoded("0"), encoded("new"), encoded("new"), encoded("newer")], "elk", text_of("elk"))
    assert album.counts()["elk"] == 2
    assert album.past[-1][0] == "added the class elk with 2 pictures"
    assert album.drop_class("cat").classes == ("dog", "owl", "elk")
    with pytest.raises(InputError, match="shots already"):
        album.add([encoded("0"), encoded("new")], "cat")
    assert album.undo().same_as(start())
