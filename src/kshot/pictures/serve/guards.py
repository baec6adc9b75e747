"""Who may ask, from where, and how much they may send."""

import asyncio
import hmac
import secrets
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kshot.errors import KshotError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 20_000_000
MOST_TOGETHER = 100
BODY_SECONDS = 60
SHORTEST_TOKEN = 16
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(KshotError):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def read_token(file: Path | None, given: str | None) -> str:
    """Of a file, of the environment, or a new one; never of the command line, which every process can read."""
    if file is None:
        return given if given is not None else secrets.token_urlsafe(24)
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KshotError(f"the token file {file} cannot be read ({error}).") from None


def check_binding(host: str, token: str | None) -> None:
    """Beyond loopback anyone on the network may ask, so a token is needed."""
    if host not in LOOPBACK and token is None:
        raise KshotError(
            f"--host {host} lets other machines in; give a token with --token-file or KSHOT_TOKEN, or leave --host out."
        )
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise KshotError(f"the token has {len(token)} characters; at least {SHORTEST_TOKEN} are needed.")


def check_request(request: "Request", host: str, token: str | None) -> None:
    """No other site may use a visitor's browser to reach the server.

    A page of another site sends its Origin; a name that was pointed at this machine (DNS rebinding) shows in Host.
    """
    named = request.headers.get("host", "")
    if host in LOOPBACK and _without_port(named) not in LOOPBACK:
        raise Refused(403, f"this server answers to {', '.join(LOOPBACK)} only, not to '{named[:80]}'.")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != named:
        raise Refused(403, "requests from other sites are refused.")
    if request.headers.get("sec-fetch-site") == "cross-site" and request.url.path.startswith("/api/"):
        raise Refused(403, "requests from other sites are refused.")
    if token is not None and request.url.path.startswith("/api/"):
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise Refused(401, "the token is missing or wrong; open the address that `kshot serve` printed.")


async def limited_body(request: "Request") -> bytes:
    """The body, refused as soon as it is known to be too large."""
    too_large = Refused(413, f"a picture may have {MOST_BYTES // 1_000_000} MB at most.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > MOST_BYTES:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Refused(408, f"the picture did not arrive within {BODY_SECONDS} seconds.") from None
    return b"".join(parts)


def split_body(content: bytes, sizes: Sequence[str]) -> list[bytes]:
    """Several pictures that follow each other in one body, each of so many bytes; without sizes it is one."""
    if not sizes:
        return [content]
    sound = len(sizes) <= MOST_TOGETHER and all(size.isdecimal() and len(size) < 10 for size in sizes)
    ends = list(accumulate(map(int, sizes))) if sound else [-1]
    if ends[-1] != len(content):
        raise Refused(400, f"the sizes do not add up to the {len(content)} bytes of {MOST_TOGETHER} pictures or fewer.")
    return [content[start:end] for start, end in pairwise([0, *ends])]


class SafeHeaders:
    """Puts the protective headers on every answer, errors included."""

    def __init__(self, app: "ASGIApp"):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        await self.app(scope, receive, send_guarded)


def _without_port(named: str) -> str:
    if named.startswith("["):
        return named[1:].partition("]")[0]
    return named.partition(":")[0]
