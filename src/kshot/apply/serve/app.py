"""The page and the JSON API. Pictures come as the raw body of a request: nothing a client sends names a file."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kshot.apply.serve.guards import Refused, SafeHeaders, check_request, limited_body
from kshot.apply.serve.live import LiveHead
from kshot.errors import KshotError

PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
# Each may hold a picture of 20 MB.
MOST_WAITING = 32
Answer = Callable[[Request], Awaitable[Response]]


def make_app(live: LiveHead, host: str, token: str | None) -> Any:
    """An ASGI application; predictions take turns in the order in which they came, and so do changes, each kind
    holding one thread at most: a slow refit keeps no prediction waiting."""
    predicting, changing = asyncio.Lock(), asyncio.Lock()
    waiting = 0

    async def in_turn(turn: asyncio.Lock, work: Callable[[], Any]) -> Any:
        nonlocal waiting
        if waiting >= MOST_WAITING:
            raise Refused(503, "too many pictures wait for their turn; send this one again later.")
        waiting += 1
        try:
            async with turn:
                return await asyncio.to_thread(work)
        finally:
            waiting -= 1

    async def about(request: Request) -> Response:
        return JSONResponse(live.about())

    async def predict(request: Request) -> Response:
        content = await limited_body(request)
        return JSONResponse(await in_turn(predicting, partial(live.predict, content)))

    async def add(request: Request) -> Response:
        label = request.query_params.get("label", "")
        content = await limited_body(request)
        return JSONResponse(await in_turn(changing, partial(live.add, content, label)))

    async def download(request: Request) -> Response:
        content = await asyncio.to_thread(live.file)
        named = {"Content-Disposition": 'attachment; filename="head.safetensors"'}
        return Response(content, media_type="application/octet-stream", headers=named)

    guarded = partial(_guarded, host=host, token=token)
    routes = [
        *(Route(path, guarded(_static(*file)), methods=["GET"]) for path, file in PAGE.items()),
        Route("/api/head", guarded(about), methods=["GET"]),
        Route("/api/head.safetensors", guarded(download), methods=["GET"]),
        Route("/api/predict", guarded(predict), methods=["POST"]),
        Route("/api/shots", guarded(add), methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(SafeHeaders)])


def _guarded(answer: Answer, host: str, token: str | None) -> Answer:
    """Checks first; every mistake of the client becomes a status and a sentence."""

    async def checked(request: Request) -> Response:
        try:
            check_request(request, host, token)
            return await answer(request)
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        except KshotError as error:
            return JSONResponse({"error": str(error)}, 400)

    return checked


def _static(name: str, kind: str) -> Answer:
    content = files("kshot.apply.serve").joinpath(name).read_bytes()

    async def answer(request: Request) -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8")

    return answer
