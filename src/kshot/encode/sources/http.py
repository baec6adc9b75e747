"""Files from disk or over HTTP behind one call, with retries that continue where the connection broke."""

import http.client
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kshot.errors import KshotError

TRIES_WITHOUT_PROGRESS = 6
SECONDS_TO_WAIT = 60
BLOCK = 1 << 20


def is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


@contextmanager
def opened(base: str, name: str) -> Iterator[IO[bytes]]:
    """A file below a folder or an address; what came over the network lies in a temporary file."""
    if not is_url(base):
        with Path(base, name).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as file:
        download(f"{base.rstrip('/')}/{name}", file)
        file.seek(0)
        yield file


def exists(base: str, name: str) -> bool:
    if not is_url(base):
        return Path(base, name).is_file()
    try:
        with opened(base, name):
            return True
    except AbsentError:
        return False


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


def _continue(url: str, file: IO[bytes]) -> None:
    have = file.tell()
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=SECONDS_TO_WAIT) as answer:
        if have and answer.status != 206:  # the server ignores ranges, so everything comes again
            file.seek(0)
            file.truncate()
        expected = answer.headers.get("Content-Length")
        start = file.tell()
        shutil.copyfileobj(answer, file, BLOCK)
        if expected is not None and file.tell() - start < int(expected):
            raise http.client.IncompleteRead(b"", int(expected) - (file.tell() - start))
