"""The classes and pictures that a head learns from. Every change makes a new album and keeps the old one for undo."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kshot.errors import InputError, unknown
from kshot.pictures.encoded import ClassText, Encoded
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import Shots

# A step back costs a list of references, not pictures.
MOST_UNDONE = 100


@dataclass(frozen=True, slots=True)
class AlbumPicture:
    """A picture of a class; its `key` stays the same when it is moved to another class."""

    key: str
    name: str
    label: str
    encoded: Encoded


@dataclass(frozen=True, slots=True)
class Album:
    """Text prototypes by class, pictures, and for each change so far what it did and the album before it."""

    texts: Mapping[str, ClassText]
    pictures: tuple[AlbumPicture, ...]
    past: tuple[tuple[str, "Album"], ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.texts)

    @staticmethod
    def of(head: PictureHead) -> "Album":
        """The album of a head's shots; a picture that is in two classes gets a key for each."""
        about, shots = head.about, head.shots
        often = Counter(about.shot_sha256)
        rows = zip(about.shot_names, about.shot_sha256, shots.y.tolist(), shots.X, head.thumbnails, strict=True)
        pictures = (
            AlbumPicture(
                sha if often[sha] == 1 else f"{sha}-{number}", name, about.classes[number], Encoded(sha, x, small)
            )
            for name, sha, number, x, small in rows
        )
        texts = map(ClassText, shots.text, about.text_norms)
        return Album(dict(zip(about.classes, texts, strict=True)), tuple(pictures))

    def add_class(self, name: str, text: ClassText) -> "Album":
        if name in self.texts:
            raise InputError(f"there is a class {name} already. Add pictures to it.")
        return self._changed(f"added the class {name}", self._with_label(name, text))

    def drop_class(self, label: str) -> "Album":
        self._check(label)
        if len(self.classes) < 3:
            raise InputError(f"without {label} one class would be left; a classifier needs at least two.")
        texts = {name: text for name, text in self.texts.items() if name != label}
        pictures = tuple(one for one in self.pictures if one.label != label)
        return self._changed(f"removed the class {label}", Album(texts, pictures))

    def add(self, pictures: Sequence[Encoded], label: str, text: ClassText | None = None) -> "Album":
        """Add pictures to a class, without copies of pictures in the album; `text` is that of a new class."""
        grown = self._with_label(label, text)
        known = {one.encoded.sha256 for one in self.pictures}
        fresh = {one.sha256: one for one in pictures if one.sha256 not in known}
        if not fresh:
            these = "this picture is a shot" if len(pictures) == 1 else f"these {len(pictures)} pictures are shots"
            raise InputError(f"{these} already.")
        added = [AlbumPicture(sha, f"added/{sha[:12]}", label, one) for sha, one in fresh.items()]
        count = count_pictures(len(added))
        what = f"{count} to {label}" if label in self.classes else f"the class {label} with {count}"
        return self._changed(f"added {what}", replace(grown, pictures=(*self.pictures, *added)))

    def move(self, keys: Sequence[str], label: str, text: ClassText | None = None) -> "Album":
        """Move pictures to a class; `text` is that of a new class."""
        grown, chosen = self._with_label(label, text), self._chosen(keys)
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
        """Pictures by class."""
        found = Counter(one.label for one in self.pictures)
        return {name: found[name] for name in self.classes}

    def shots(self) -> Shots:
        features = np.stack([one.encoded.feature for one in self.pictures])
        number = {name: row for row, name in enumerate(self.texts)}
        y = np.array([number[one.label] for one in self.pictures], np.int64)
        return Shots(features, y, np.stack([text.unit for text in self.texts.values()]))

    def same_as(self, other: "Album") -> bool:
        """Whether a head would learn the same from both."""
        own, others = ([(one.key, one.label) for one in album.pictures] for album in (self, other))
        return self.classes == other.classes and own == others

    def _with_label(self, label: str, text: ClassText | None) -> "Album":
        if text is not None and label not in self.texts:
            return replace(self, texts={**self.texts, label: text})
        self._check(label)
        return self

    def _changed(self, what: str, after: "Album") -> "Album":
        """Record a change that leaves no class without its pictures and no picture twice in a class."""
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
