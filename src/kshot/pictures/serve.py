"""The page and the JSON API. Pictures come as the raw body of a request: nothing a client sends names a file."""

import asyncio
import hmac
import secrets
from asyncio import TimerHandle
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from kshot.errors import KshotError
from kshot.pictures.live import LiveHead, Refused

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16
MOST_BYTES = 20_000_000
# Each may hold a picture of 20 MB; uvicorn answers more with 503.
MOST_CONNECTIONS = 64
# Seconds for the headers of a request, and for its body.
HEADER_SECONDS, BODY_SECONDS = 10.0, 60.0
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
PAGE, REPORT = files("kshot.pictures").joinpath("page"), files("kshot.report").joinpath("page")
# The page has the colours, type and controls of the report.
FILES = {
    "/": PAGE.joinpath("page.html"),
    **{f"/{name}": PAGE.joinpath(name) for name in ("page.css", "page.js", "server.js", "kept.js")},
    **{f"/{name}": REPORT.joinpath(name) for name in ("shared.css", "theme.js")},
}
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
Answer = Callable[[Request], Awaitable[Response]]


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP, which by itself waits for ever for headers that somebody began to send."""

    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def make_server(app: Any, host: str, port: int) -> Server:
    """A server for the app; the size of headers is limited by uvicorn."""
    limits = {"limit_concurrency": MOST_CONNECTIONS, "http": PatientProtocol}
    return Server(
        Config(app, host=host, port=port, log_level="warning", ws="none", headers=[*HEADERS.items()], **limits)
    )


def make_app(live: LiveHead, host: str, token: str | None) -> Starlette:
    """An ASGI application for one head."""

    async def about(request: Request) -> Response:
        return JSONResponse(live.about())

    async def predict(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(live.predict, await limited_body(request)))

    async def learn(request: Request) -> Response:
        label = request.query_params.get("label", "").strip()
        if label not in live.head.about.classes and "new" not in request.query_params:
            raise Refused(400, f"there is no class '{label[:80]}'; add &new=1 to make it one.")
        return JSONResponse(await asyncio.to_thread(live.learn, await limited_body(request), label))

    def route(method: str, path: str, answer: Answer) -> Route:
        async def checked(request: Request) -> Response:
            check_request(request, host, token)
            return await answer(request)

        return Route(path, checked, methods=[method])

    routes = [
        *(route("GET", path, _page) for path in FILES),
        route("GET", "/api/head", about),
        route("POST", "/api/predict", predict),
        route("POST", "/api/shots", learn),
    ]
    return Starlette(routes=routes, exception_handlers={KshotError: _error})


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


def check_request(request: Request, host: str, token: str | None) -> None:
    """Refuse requests of other sites, and requests to the API without the token.

    A page of another site sends its Origin; a name that was pointed at this machine (DNS rebinding) shows in Host.
    """
    named, origin = request.headers.get("host", ""), request.headers.get("origin")
    name = named[1:].partition("]")[0] if named.startswith("[") else named.partition(":")[0]
    if host in LOOPBACK and name not in LOOPBACK:
        raise Refused(403, f"this server answers to {', '.join(LOOPBACK)} only, not to '{named[:80]}'.")
    api = request.url.path.startswith("/api/")
    cross_site = api and request.headers.get("sec-fetch-site") == "cross-site"
    if cross_site or (origin is not None and origin.partition("://")[2] != named):
        raise Refused(403, "requests from other sites are refused.")
    if api and token is not None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise Refused(401, "the token is missing or wrong; open the address that `kshot serve` printed.")


async def limited_body(request: Request) -> bytes:
    """Read the body; refuse it as soon as it is known to exceed 20 MB, or takes a minute."""
    too_large = Refused(413, f"a picture may have {MOST_BYTES // 1_000_000} MB at most.")
    if int(request.headers.get("content-length", 0)) > MOST_BYTES:
        raise too_large
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BYTES:
                    raise too_large
    except TimeoutError:
        raise Refused(408, f"the picture did not arrive in {BODY_SECONDS:.0f} seconds.") from None
    return bytes(content)


async def _error(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, getattr(error, "status", 400))


async def _page(request: Request) -> Response:
    file = FILES[request.url.path]
    return Response(file.read_bytes(), media_type=KINDS[file.name.rpartition(".")[2]])
