"""The classes and pictures that a served head learns from, as one edits them: a change makes a new album and keeps the
old one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kshot.errors import InputError, unknown
from kshot.pictures.encoded import Encoded
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import Shots
from kshot.types import Array

# An undone change costs a list of references, not pictures.
MOST_UNDONE = 100


@dataclass(frozen=True, slots=True)
class AlbumPicture:
    """One picture of a class; pages call it by its `key`, whatever class it is moved to."""

    key: str
    name: str
    label: str
    encoded: Encoded


@dataclass(frozen=True, slots=True)
class NewClass:
    """A class that the album may not have yet: its name, its text prototype (d,) and that prototype's norm."""

    name: str
    text: Array
    norm: float


@dataclass(frozen=True, slots=True)
class Album:
    """Classes with their text prototypes (C, d) and the norms these had, pictures, and the changes that led to
    them: what each did, and the album before it, which has no past of its own."""

    classes: tuple[str, ...]
    text: Array
    text_norms: tuple[float, ...]
    pictures: tuple[AlbumPicture, ...]
    past: tuple[tuple[str, "Album"], ...] = ()

    @staticmethod
    def of(head: PictureHead) -> "Album":
        """One content may teach two classes; only then the hash alone does not tell the pictures apart."""
        about, shots = head.about, head.shots
        often = Counter(about.shot_sha256)
        rows = zip(about.shot_names, about.shot_sha256, shots.y.tolist(), shots.X, head.thumbnails, strict=True)
        pictures = (
            AlbumPicture(
                sha if often[sha] == 1 else f"{sha}-{number}", name, about.classes[number], Encoded(sha, x, small)
            )
            for name, sha, number, x, small in rows
        )
        return Album(about.classes, shots.text, about.text_norms, tuple(pictures))

    def add_class(self, new: NewClass) -> "Album":
        if new.name in self.classes:
            raise InputError(f"there is a class {new.name} already. Add pictures to it.")
        return self._changed(f"added the class {new.name}", self._with(new))

    def drop_class(self, label: str) -> "Album":
        self._check(label)
        if len(self.classes) < 3:
            raise InputError(f"without {label} one class would be left; a classifier needs at least two.")
        kept = [number for number, name in enumerate(self.classes) if name != label]
        left = replace(
            self,
            classes=tuple(self.classes[number] for number in kept),
            text=self.text[kept],
            text_norms=tuple(self.text_norms[number] for number in kept),
            pictures=tuple(one for one in self.pictures if one.label != label),
        )
        return self._changed(f"removed the class {label}", left)

    def add(self, pictures: Sequence[Encoded], label: str, new: NewClass | None = None) -> "Album":
        """To a class of the album, or to a `new` one; copies of what the album has are left out."""
        grown = self._with(new)
        grown._check(label)
        taught = {one.encoded.sha256 for one in self.pictures}
        fresh = {one.sha256: one for one in pictures if one.sha256 not in taught}
        if not fresh:
            raise InputError(f"{_these(len(pictures))} already.")
        added = [AlbumPicture(sha, f"added/{sha[:12]}", label, one) for sha, one in fresh.items()]
        count = count_pictures(len(added))
        what = f"{count} to {label}" if label in self.classes else f"the class {label} with {count}"
        return self._changed(f"added {what}", replace(grown, pictures=(*self.pictures, *added)))

    def move(self, keys: Sequence[str], label: str, new: NewClass | None = None) -> "Album":
        grown = self._with(new)
        grown._check(label)
        chosen = self._chosen(keys)
        moved = tuple(replace(one, label=label) if one.key in chosen else one for one in self.pictures)
        where = label if label in self.classes else f"the new class {label}"
        return self._changed(f"moved {count_pictures(len(chosen))} to {where}", replace(grown, pictures=moved))

    def remove(self, keys: Sequence[str]) -> "Album":
        chosen = self._chosen(keys)
        left = tuple(one for one in self.pictures if one.key not in chosen)
        return self._changed(f"removed {count_pictures(len(chosen))}", replace(self, pictures=left))

    def undo(self) -> "Album":
        if not self.past:
            raise InputError("there is nothing to undo.")
        return replace(self.past[-1][1], past=self.past[:-1])

    def counts(self) -> dict[str, int]:
        """How many pictures each class has."""
        found = Counter(one.label for one in self.pictures)
        return {name: found[name] for name in self.classes}

    def shots(self) -> Shots:
        features = np.stack([one.encoded.feature for one in self.pictures])
        number = {name: row for row, name in enumerate(self.classes)}
        return Shots(features, np.array([number[one.label] for one in self.pictures], np.int64), self.text)

    def same_as(self, other: "Album") -> bool:
        """Whether a head would learn the same from both."""
        return self.classes == other.classes and [(p.key, p.label) for p in self.pictures] == [
            (p.key, p.label) for p in other.pictures
        ]

    def _with(self, new: NewClass | None) -> "Album":
        if new is None or new.name in self.classes:
            return self
        classes = (*self.classes, new.name)
        norms = (*self.text_norms, new.norm)
        return replace(self, classes=classes, text=np.vstack([self.text, new.text]), text_norms=norms)

    def _changed(self, what: str, after: "Album") -> "Album":
        """No class loses its last picture, and none gets the same picture twice."""
        emptied = {one.label for one in self.pictures} - {one.label for one in after.pictures}
        for name in sorted(emptied & set(after.classes)):
            raise InputError(
                f"{name} would be left without a picture. Add another one to it first, or remove the class."
            )
        contents = Counter((one.encoded.sha256, one.label) for one in after.pictures)
        (_, label), most = contents.most_common(1)[0]
        if most > 1:
            raise InputError(f"{label} has this picture already. Remove one of the two instead.")
        past = (*self.past, (what, replace(self, past=())))
        return replace(after, past=past[-MOST_UNDONE:])

    def _check(self, label: str) -> None:
        if label not in self.classes:
            raise InputError(unknown("class", label, self.classes, "Choose one of them."))

    def _chosen(self, keys: Sequence[str]) -> frozenset[str]:
        chosen = frozenset(keys)
        if not chosen or not chosen <= {one.key for one in self.pictures}:
            raise InputError("no such pictures: they were changed elsewhere. Reload the page and choose again.")
        return chosen


def count_pictures(number: int) -> str:
    return "a picture" if number == 1 else f"{number} pictures"


def _these(number: int) -> str:
    return "this picture is a shot" if number == 1 else f"these {number} pictures are shots"
