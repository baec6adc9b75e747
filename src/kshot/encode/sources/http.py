"""Files from disk or over HTTP behind one call, with retries that continue where the connection broke."""

import http.client
import tempfile
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kshot.errors import KshotError
from kshot.files import write_atomically

TRIES_WITHOUT_PROGRESS = 6
SECONDS_TO_WAIT = 60
BLOCK = 1 << 20
# A shard of a dataset, and a list of names; a server that sends more is broken or hostile.
MOST_BYTES, MOST_TEXT_BYTES = 20 << 30, 64 << 20


def is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


class Shelf:
    """Files below a folder or an address. What came over the network is kept in `folder` if there is one; else only the
    last file is at hand, so that a shard which is read several times is fetched once."""

    def __init__(self, base: str, folder: Path | None = None):
        self.base, self.folder = base.rstrip("/"), folder
        self._name, self._file = "", None

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        if not is_url(self.base):
            with Path(self.base, name).open("rb") as file:
                yield file
        elif self.folder is not None:
            path = self.folder / name
            if not path.is_file():
                write_atomically(path, self._fetch(name))
            with path.open("rb") as file:
                yield file
        else:
            yield self._last(name)

    def exists(self, name: str) -> bool:
        if not is_url(self.base):
            return Path(self.base, name).is_file()
        try:
            with self.opened(name):
                return True
        except AbsentError:
            return False

    def _fetch(self, name: str) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            with path.open("wb") as file:
                download(f"{self.base}/{name}", file)

        return write

    def _last(self, name: str) -> IO[bytes]:
        if self._file is None or self._name != name:
            if self._file is not None:
                self._file.close()
            self._name, self._file = "", tempfile.TemporaryFile()  # noqa: SIM115, it outlives the call
            weakref.finalize(self, self._file.close)
            download(f"{self.base}/{name}", self._file)
            self._name = name
        self._file.seek(0)
        return self._file


class AbsentError(KshotError):
    """The server answered that there is no such file."""


def download(url: str, file: IO[bytes], pause: Callable[[float], None] = time.sleep) -> None:
    """Fetch all of `url` into `file`; a broken connection is continued by a range request."""
    tries = 0
    while True:
        before = file.tell()
        try:
            _continue(url, file)
            return
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                raise AbsentError(f"there is no {url} (HTTP {error.code}).") from None
            if error.code in (401, 403):
                raise KshotError(f"{url} asks for a login (HTTP {error.code}); use a local copy.") from None
            problem: Exception = error
        except (OSError, http.client.HTTPException) as error:
            problem = error
        tries = 0 if file.tell() > before else tries + 1
        if tries >= TRIES_WITHOUT_PROGRESS:
            raise KshotError(
                f"{url} broke off {tries} times at byte {file.tell()} ({problem}). "
                "What is encoded is kept: run the same command again."
            ) from None
        pause(min(0.1 * 2**tries, 5))


def _too_large(url: str, most: int) -> KshotError:
    return KshotError(f"{url} has more than {most >> 20:,} MB, the most that is fetched. Use a local copy.")


def _continue(url: str, file: IO[bytes]) -> None:
    have = file.tell()
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=SECONDS_TO_WAIT) as answer:
        if have and answer.status != 206:  # the server ignores ranges, so everything comes again
            file.seek(0)
            file.truncate()
        expected = answer.headers.get("Content-Length")
        start = file.tell()
        most = MOST_TEXT_BYTES if url.endswith(".txt") else MOST_BYTES
        if expected is not None and start + int(expected) > most:
            raise _too_large(url, most)
        while block := answer.read(BLOCK):
            file.write(block)
            if file.tell() > most:
                raise _too_large(url, most)
        if expected is not None and file.tell() - start < int(expected):
            raise http.client.IncompleteRead(b"", int(expected) - (file.tell() - start))
