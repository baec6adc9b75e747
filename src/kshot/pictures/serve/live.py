"""The head that is being served: read by many, changed by one, and on disk always whole."""

import base64
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kshot.encode.protocol import Encoder
from kshot.errors import InputError, UndefinedError
from kshot.files import locked, sha256, write_hashed
from kshot.pictures.encoded import Encoded, encode_contents, encode_names
from kshot.pictures.fit import learn
from kshot.pictures.head import PictureHead
from kshot.pictures.photos import listed
from kshot.pictures.predict import judge_picture, nearest_shots
from kshot.pictures.serve.album import Album, NewClass, count_pictures
from kshot.pictures.serve.guards import Refused
from kshot.progress import Progress, watched

# Enough for any camera's picture after it was shrunk once; a 50-megapixel picture is refused by its header.
MOST_PIXELS = 40_000_000
# Longer than any folder's name; a prompt's encoder reads no more than about that.
MOST_NAME = 200
# Assessing a head goes through its folds as often as this, or less.
PASSES = 3


class LiveHead:
    """`album` is what the head shall learn from; `served` is the head and the album that it has learnt from, replaced
    together, so that nobody sees a half-changed one."""

    def __init__(self, path: Path, encoder: Encoder):
        self.path = path
        self.encoder = encoder
        # Hashed before it is read: a file that changes in between is noticed at the next change.
        self._on_disk = _hash(path)
        head = PictureHead.load(path)
        head.check_encoder(encoder)
        self.album = Album.of(head)
        self.served = head, self.album
        self.edits = self.refits = 0
        self.progress: float | None = None
        self._changing, self._writing = threading.Lock(), threading.Lock()
        self._pending: Future[None] | None = None

    def about(self) -> dict[str, Any]:
        """What the page shows of the head, and how far a refit has come."""
        (head, _), album = self.served, self.album
        return {
            "classes": head.about.classes,
            "shots": head.shots.counts.tolist(),
            "method": head.head.info.title,
            "reason": head.about.reason,
            "accuracy": head.about.accuracy,
            "backbone": head.about.backbone,
            "album": [{"label": name, "pictures": count} for name, count in album.counts().items()],
            "undo": album.past[-1][0] if album.past else None,
            "edits": self.edits,
            "refits": self.refits,
            "progress": self.progress,
        }

    def encode(self, contents: Sequence[bytes]) -> list[Encoded]:
        """All of them, or an error that says which one cannot be read: pictures have numbers here, not names."""
        told = ["the picture"] if len(contents) == 1 else [f"picture {n + 1}" for n in range(len(contents))]
        found = encode_contents(self.encoder, list(zip(told, contents, strict=True)), None, most_pixels=MOST_PIXELS)
        for one in found:
            if isinstance(one, InputError):
                raise one
        return [one for one in found if isinstance(one, Encoded)]

    def new_class(self, name: str) -> NewClass:
        """A class that only text speaks for so far; its name is put into the head's prompt."""
        if not name.strip() or len(name) > MOST_NAME or not name.isprintable():
            raise InputError(f"a class needs a name of 1 to {MOST_NAME} letters in one line.")
        head, _ = self.served
        text = encode_names(self.encoder, [name.strip()], head.about.prompt)
        return NewClass(name.strip(), text.unit[0], float(text.norms[0]))

    def predict(self, content: bytes) -> dict[str, Any]:
        head, _ = self.served
        (encoded,) = self.encode([content])
        feature = encoded.feature
        said = judge_picture(head, "", feature)
        return {
            "answer": said.answer,
            "known": said.known,
            "top": [asdict(guess) for guess in said.top],
            "nearest": [
                asdict(one) | {"thumbnail": base64.b64encode(head.thumbnails[one.row]).decode()}
                for one in nearest_shots(head, feature, 3)
            ],
        }

    def change(self, edit: Callable[[Album], Album]) -> Future[None]:
        """The album now; the head when `refit` has run, which settles the future that is returned. Changes that come
        while a refit runs wait for one more refit together."""
        with self._writing:
            self._check_unchanged()
        with self._changing:
            self.album = edit(self.album)
            self.edits += 1
            if self._pending is None:
                self._pending = Future()
            return self._pending

    def refit(self) -> None:
        """Learn from the album, write, and only then serve the new head. Where that fails, the album is again what
        the head has learnt from, and every waiting change hears why. Call it from one thread at a time."""
        with self._changing:
            album, waiting, self._pending = self.album, self._pending, None
        if waiting is None:
            return
        head, fitted = self.served
        try:
            if not album.same_as(fitted):
                head = self._learnt(album)
                # Another server of the same file looks and writes before us or after us, never in between.
                with self._writing, locked(self.path):
                    self._on_disk = write_hashed(self.path, head.save, lambda _: self._check_unchanged())
                self.refits += 1
            self.served = head, album
            waiting.set_result(None)
        except Exception as error:
            with self._changing:
                self.edits += 1
                self.album, later, self._pending = fitted, self._pending, None
            for one in filter(None, (waiting, later)):
                one.set_exception(error)
        finally:
            self.progress = None

    def file(self) -> bytes:
        """The head file as it is on disk."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise Refused(
                404,
                f"the head file {self.path.name} cannot be read ({error.strerror}). Put it back where "
                "`kshot serve` found it.",
            ) from None

    def _learnt(self, album: Album) -> PictureHead:
        self.progress = passed = 0.0

        def watch(told: Progress) -> None:
            nonlocal passed
            if told.total:
                self.progress = min(1.0, (passed + told.count / told.total) / PASSES)
                passed += told.count == told.total

        before, _ = self.served
        known = before.about.undecided()
        known["classes"], known["text_norms"] = album.classes, album.text_norms
        known["shot_names"] = tuple(one.name for one in album.pictures)
        known["shot_sha256"] = tuple(one.encoded.sha256 for one in album.pictures)
        thumbnails = [one.encoded.thumbnail for one in album.pictures]
        try:
            with watched(watch):
                return learn(album.shots(), thumbnails, known)[0]
        except UndefinedError as error:
            info = before.head.info
            by_name = 0 if "text" in info.sees else -1
            few = [name for name, own in album.counts().items() if by_name < own < info.min_shots]
            if not few:
                raise
            raise InputError(
                f"{listed(few)}: {info.title} needs {count_pictures(info.min_shots)} of each class. Add them together."
            ) from error

    def _check_unchanged(self) -> None:
        """Another file than the one that this server read or wrote holds others' shots."""
        if _hash(self.path) != self._on_disk:
            raise Refused(
                409,
                f"the head file {self.path.name} was changed, moved or removed by another program, so nothing was "
                "changed here. Restart `kshot serve` to load it, then make the change again.",
            )


def _hash(path: Path) -> str | None:
    return sha256(path) if path.is_file() else None
