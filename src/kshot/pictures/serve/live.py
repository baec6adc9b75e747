"""The head that is being served: predictions read it, one refit at a time replaces it, and its file is always whole."""

import base64
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kshot.encode.protocol import Encoder
from kshot.errors import InputError, UndefinedError, unknown
from kshot.files import locked, sha256, write_hashed
from kshot.pictures.album import Album, AlbumPicture, count_pictures
from kshot.pictures.encoded import ClassText, Encoded, all_encoded, encode_contents, encode_names
from kshot.pictures.fit import learn
from kshot.pictures.head import PictureHead
from kshot.pictures.photos import listed
from kshot.pictures.predict import nearest_shots, predict_feature
from kshot.pictures.serve.guards import Refused
from kshot.progress import Progress, watched

MOST_PIXELS = 40_000_000
MOST_NAME = 200
PER_LIST = 60
# Assessing a head fits all of its folds at most three times.
PASSES = 3


class LiveHead:
    """`album` is what the head shall learn from; `served` is the head with the album that it has learnt from."""

    def __init__(self, path: Path, encoder: Encoder):
        self.path = path
        self.encoder = encoder
        # Hashed before it is read, so that a change in between is noticed later.
        self._on_disk = _hash(path)
        head = PictureHead.load(path)
        head.check_encoder(encoder)
        self.album = Album.of(head)
        self.served = head, self.album
        self.edits = self.refits = 0
        self.progress: float | None = None
        self._lock = threading.Lock()
        self._pending: Future[None] | None = None

    def about(self) -> dict[str, Any]:
        """What the page shows of the head, and the progress of a refit."""
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
        """Encode all pictures, or raise the error of the first that cannot be read, by its number."""
        names = ["the picture"] if len(contents) == 1 else [f"picture {n + 1}" for n in range(len(contents))]
        named = list(zip(names, contents, strict=True))
        return all_encoded(encode_contents(self.encoder, named, None, most_pixels=MOST_PIXELS))

    def encode_name(self, name: str) -> ClassText:
        """The text prototype of a new class, from the head's prompt."""
        if not name or len(name) > MOST_NAME or not name.isprintable():
            raise InputError(f"a class needs a name of 1 to {MOST_NAME} letters in one line.")
        head, _ = self.served
        return encode_names(self.encoder, [name], head.about.prompt)[name]

    def predict(self, content: bytes) -> dict[str, Any]:
        head, _ = self.served
        (encoded,) = self.encode([content])
        said = predict_feature(head, "", encoded.feature)
        return {
            "answer": said.answer,
            "known": said.known,
            "top": [asdict(guess) for guess in said.top],
            "nearest": [
                asdict(one) | {"thumbnail": base64.b64encode(head.thumbnails[one.row]).decode()}
                for one in nearest_shots(head, encoded.feature, 3)
            ],
        }

    def pictures(self, label: str | None, start: int) -> dict[str, Any]:
        """Sixty pictures of a class from `start` on, or of all classes those that left-out heads take for another.

        Pictures that changed since the last refit come first, then the least certain.
        """
        album, (head, fitted) = self.album, self.served
        if label is not None and label not in album.classes:
            raise InputError(unknown("class", label, album.classes, "Choose one of them."))
        learnt = {(one.key, one.label): (-1.0, one.label) for one in fitted.pictures}
        if head.left_out is not None:
            rows = zip(fitted.pictures, head.left_out.own.tolist(), head.left_out.predicted.tolist(), strict=True)
            for one, own, predicted in rows:
                # A picture cannot be moved to a class that was removed since.
                if not np.isnan(own) and fitted.classes[predicted] in album.classes:
                    learnt[one.key, one.label] = own, fitted.classes[predicted]

        def own_and_predicted(one: AlbumPicture) -> tuple[float, str]:
            return learnt.get((one.key, one.label), (-1.0, one.label))

        if label is None:
            chosen = [one for one in album.pictures if own_and_predicted(one)[1] != one.label]
        else:
            chosen = [one for one in album.pictures if one.label == label]
        chosen.sort(key=own_and_predicted)
        return {
            "total": len(chosen),
            "pictures": [
                {
                    "key": one.key,
                    "name": one.name,
                    "label": one.label,
                    "learnt": (one.key, one.label) in learnt,
                    "own": own if own >= 0 else None,
                    "predicted": predicted,
                    "thumbnail": base64.b64encode(one.encoded.thumbnail).decode(),
                }
                for one in chosen[start : start + PER_LIST]
                for own, predicted in [own_and_predicted(one)]
            ],
        }

    def change(self, edit: Callable[[Album], Album]) -> Future[None]:
        """Change the album at once; the future that is returned is done when a refit has learnt the change.

        Changes that come while a refit runs are learnt together by the next one.
        """
        with self._lock:
            self._check_unchanged()
            self.album = edit(self.album)
            self.edits += 1
            if self._pending is None:
                self._pending = Future()
            return self._pending

    def refit(self) -> None:
        """Learn from the album, write the file, then serve the new head. Call it from one thread at a time.

        If that fails, all changes since the last refit are taken back, and their futures raise the error.
        """
        with self._lock:
            album, waiting, self._pending = self.album, self._pending, None
        if waiting is None:
            return
        head, fitted = self.served
        try:
            if not album.same_as(fitted):
                head = self._learn(album)
                # The file's lock keeps another server of it from writing between our check and our write.
                with self._lock, locked(self.path):
                    self._on_disk = write_hashed(self.path, head.save, lambda _: self._check_unchanged())
                self.refits += 1
            self.served = head, album
            waiting.set_result(None)
        except Exception as error:
            with self._lock:
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
            raise Refused(404, f"the head file {self.path.name} cannot be read ({error.strerror}).") from None

    def _learn(self, album: Album) -> PictureHead:
        self.progress = passed = 0.0

        def watch(counted: Progress) -> None:
            nonlocal passed
            if counted.total:
                self.progress = min(1.0, (passed + counted.count / counted.total) / PASSES)
                passed += counted.count == counted.total

        before, _ = self.served
        try:
            with watched(watch):
                return learn(album, before.about.setting())[0]
        except UndefinedError as error:
            info = before.head.info
            fewest = 1 if "text" in info.sees else 0
            few = [name for name, own in album.counts().items() if fewest <= own < info.min_shots]
            if not few:
                raise
            raise InputError(
                f"{listed(few)}: {info.title} needs {count_pictures(info.min_shots)} of each class. Add them together."
            ) from error

    def _check_unchanged(self) -> None:
        """Refuse to replace a head file that another program wrote, because it holds other shots."""
        if _hash(self.path) != self._on_disk:
            raise Refused(
                409,
                f"the head file {self.path.name} was changed, moved or removed by another program, so nothing was "
                "changed here. Restart `kshot serve` to load it, then make the change again.",
            )


def _hash(path: Path) -> str | None:
    return sha256(path) if path.is_file() else None
