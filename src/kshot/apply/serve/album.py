"""The pictures that a served head learns from, as one edits them: a change makes a new album and keeps the old one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kshot.apply.encoded import Encoded
from kshot.apply.head import PictureHead
from kshot.apply.held_out import Shots
from kshot.errors import InputError, unknown

# An undone change costs a list of references, not pictures.
MOST_UNDONE = 100


@dataclass(frozen=True, slots=True)
class AlbumPicture:
    """One picture of a class; pages call it by its `key`, whatever class it is moved to."""

    key: str
    name: str
    label: int
    encoded: Encoded


@dataclass(frozen=True, slots=True)
class Album:
    """Pictures with their labels, and the changes that led to them: what each did, and the pictures before it."""

    classes: tuple[str, ...]
    pictures: tuple[AlbumPicture, ...]
    past: tuple[tuple[str, tuple[AlbumPicture, ...]], ...] = ()

    @staticmethod
    def of(head: PictureHead) -> "Album":
        """One content may teach two classes; only then the hash alone does not tell the pictures apart."""
        about, shots = head.about, head.shots
        often = Counter(about.shot_sha256)
        rows = zip(
            about.shot_names, about.shot_sha256, shots.y.tolist(), shots.X, head.thumbnails, strict=True
        )
        return Album(
            about.classes,
            tuple(
                AlbumPicture(
                    sha if often[sha] == 1 else f"{sha}-{label}", name, label, Encoded(sha, x, small)
                )
                for name, sha, label, x, small in rows
            ),
        )

    def add(self, new: Encoded, label: str) -> "Album":
        number = self._number(label)
        if any(one.encoded.sha256 == new.sha256 for one in self.pictures):
            raise InputError("this picture is a shot already.")
        added = AlbumPicture(new.sha256, f"added/{new.sha256[:12]}", number, new)
        return self._changed(f"added a picture to {label}", (*self.pictures, added))

    def move(self, keys: Sequence[str], label: str) -> "Album":
        number = self._number(label)
        chosen = self._chosen(keys)
        moved = tuple(replace(one, label=number) if one.key in chosen else one for one in self.pictures)
        return self._changed(f"moved {_counted(len(chosen))} to {label}", moved)

    def remove(self, keys: Sequence[str]) -> "Album":
        chosen = self._chosen(keys)
        left = tuple(one for one in self.pictures if one.key not in chosen)
        return self._changed(f"removed {_counted(len(chosen))}", left)

    def undo(self) -> "Album":
        if not self.past:
            raise InputError("there is nothing to undo.")
        return replace(self, pictures=self.past[-1][1], past=self.past[:-1])

    def counts(self) -> list[int]:
        found = Counter(one.label for one in self.pictures)
        return [found[label] for label in range(len(self.classes))]

    def shots(self, text: np.ndarray) -> Shots:
        features = np.stack([one.encoded.feature for one in self.pictures])
        return Shots(features, np.array([one.label for one in self.pictures], np.int64), text)

    def same_pictures(self, other: "Album") -> bool:
        return [(p.key, p.label) for p in self.pictures] == [(p.key, p.label) for p in other.pictures]

    def _changed(self, what: str, pictures: tuple[AlbumPicture, ...]) -> "Album":
        """Every class keeps a picture, and no class gets the same one twice."""
        counts = Counter(one.label for one in pictures)
        for label, name in enumerate(self.classes):
            if not counts[label]:
                raise InputError(f"{name} would be left without a picture. Add another one to it first.")
        contents = Counter((one.encoded.sha256, one.label) for one in pictures)
        (_, label), most = contents.most_common(1)[0]
        if most > 1:
            raise InputError(
                f"{self.classes[label]} has this picture already. Remove one of the two instead."
            )
        return replace(self, pictures=pictures, past=(*self.past, (what, self.pictures))[-MOST_UNDONE:])

    def _number(self, label: str) -> int:
        if label not in self.classes:
            raise InputError(unknown("class", label, self.classes, "Choose one of them."))
        return self.classes.index(label)

    def _chosen(self, keys: Sequence[str]) -> frozenset[str]:
        chosen = frozenset(keys)
        if not chosen or not chosen <= {one.key for one in self.pictures}:
            raise InputError(
                "no such pictures: they were changed elsewhere. Reload the page and choose again."
            )
        return chosen


def _counted(number: int) -> str:
    return "a picture" if number == 1 else f"{number} pictures"
