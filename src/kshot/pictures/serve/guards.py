"""Access to the server: token, sites, and the size of a request."""

import hmac
import io
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.errors import KshotError

if TYPE_CHECKING:
    from starlette.requests import Request

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 20_000_000
MOST_TOGETHER = 100
SHORTEST_TOKEN = 16
# Sent with every answer.
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
    """The token of a file, of the environment, or a new one; a command line could be read by every process."""
    if file is None:
        return given if given is not None else secrets.token_urlsafe(24)
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KshotError(f"the token file {file} cannot be read ({error}).") from None


def check_binding(host: str, token: str | None) -> None:
    """Refuse a host beyond loopback without a token, because anyone on the network could use it."""
    if host not in LOOPBACK and token is None:
        raise KshotError(
            f"--host {host} lets other machines in; give a token with --token-file or KSHOT_TOKEN, or leave --host out."
        )
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise KshotError(f"the token has {len(token)} characters; at least {SHORTEST_TOKEN} are needed.")


def check_request(request: "Request", host: str, token: str | None) -> None:
    """Refuse requests of other sites, and requests to the API without the token.

    A page of another site sends its Origin; a name that was pointed at this machine (DNS rebinding) shows in Host.
    """
    named, origin = request.headers.get("host", ""), request.headers.get("origin")
    asked = named[1:].partition("]")[0] if named.startswith("[") else named.partition(":")[0]
    if host in LOOPBACK and asked not in LOOPBACK:
        raise Refused(403, f"this server answers to {', '.join(LOOPBACK)} only, not to '{named[:80]}'.")
    api = request.url.path.startswith("/api/")
    cross_site = api and request.headers.get("sec-fetch-site") == "cross-site"
    if cross_site or (origin is not None and origin.partition("://")[2] != named):
        raise Refused(403, "requests from other sites are refused.")
    if api and token is not None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise Refused(401, "the token is missing or wrong; open the address that `kshot serve` printed.")


async def limited_body(request: "Request") -> bytes:
    """Read the body; refuse it as soon as it is known to exceed 20 MB."""
    too_large = Refused(413, f"a picture may have {MOST_BYTES // 1_000_000} MB at most.")
    if int(request.headers.get("content-length", 0)) > MOST_BYTES:
        raise too_large
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise too_large
    return bytes(content)


def split_body(content: bytes, sizes: Sequence[str]) -> list[bytes]:
    """Split a body of several pictures by their sizes in bytes; without sizes it is one picture."""
    if not sizes:
        return [content]
    lengths = [int(size[:9]) if size.isdecimal() else -1 for size in sizes[: MOST_TOGETHER + 1]]
    if len(lengths) > MOST_TOGETHER or min(lengths) < 0 or sum(lengths) != len(content):
        raise Refused(400, f"the sizes do not add up to the {len(content)} bytes of {MOST_TOGETHER} pictures or fewer.")
    pictures = io.BytesIO(content)
    return [pictures.read(length) for length in lengths]
