"""The page and the JSON API. Pictures come as the raw body of a request: nothing a client sends names a file."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kshot.errors import KshotError
from kshot.pictures.serve.album import Album, NewClass
from kshot.pictures.serve.guards import Refused, SafeHeaders, check_request, limited_body, split_body
from kshot.pictures.serve.live import LiveHead
from kshot.pictures.serve.shown import list_shown

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
OWN, REPORT = files("kshot.pictures.serve"), files("kshot.report").joinpath("page")
PAGE = {
    "/": (OWN, "page.html"),
    "/page.css": (OWN, "page.css"),
    **{f"/{name}.js": (OWN, f"{name}.js") for name in ("page", "server", "tries", "album", "choice", "newclass")},
    # The report's colours, type and controls are this page's too.
    **{f"/{name}": (REPORT, name) for name in ("shared.css", "theme.js")},
}
# Each may hold a picture of 20 MB.
MOST_WAITING = 32
Answer = Callable[[Request], Awaitable[Response]]


def make_app(live: LiveHead, host: str, token: str | None) -> Any:
    """An ASGI application; pictures are encoded in turn, in the order in which they came, and so are names encoded and
    heads fitted, each kind holding one thread at most: a slow refit keeps no prediction waiting."""
    encoding, naming, fitting = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
    waiting = 0

    async def in_turn(work: Callable[[bytes], Any], request: Request) -> Any:
        nonlocal waiting
        content = await limited_body(request)
        if waiting >= MOST_WAITING:
            raise Refused(503, "too many pictures wait for their turn; send this one again later.")
        waiting += 1
        try:
            async with encoding:
                return await asyncio.to_thread(work, content)
        finally:
            waiting -= 1

    async def changed(edit: Callable[[Album], Album]) -> Response:
        """Answers when the change is learnt and on disk; whoever finds it learnt with another's has nothing to do."""
        learnt = await asyncio.to_thread(live.change, edit)
        async with fitting:
            if not learnt.done():
                await asyncio.to_thread(live.refit)
        learnt.result()
        return JSONResponse(live.about())

    async def about(request: Request) -> Response:
        return JSONResponse(live.about())

    async def pictures(request: Request) -> Response:
        start = request.query_params.get("start", "0")
        if not start.isdecimal():
            raise Refused(400, f"start is '{start[:20]}'; give a number of pictures to skip.")
        return JSONResponse(list_shown(live, request.query_params.get("label"), int(start[:9])))

    async def predict(request: Request) -> Response:
        return JSONResponse(await in_turn(live.predict, request))

    async def new_class(label: str) -> NewClass:
        async with naming:
            return await asyncio.to_thread(live.new_class, label)

    async def named(request: Request) -> tuple[str, NewClass | None]:
        """The class that is asked for, and what makes it where the request allows a `new` one."""
        label = request.query_params.get("label", "")
        if "new" not in request.query_params or label in live.album.classes:
            return label, None
        new = await new_class(label)
        return new.name, new

    async def add(request: Request) -> Response:
        sizes = request.query_params.getlist("size")
        pictures = await in_turn(lambda content: live.encode(split_body(content, sizes)), request)
        label, new = await named(request)
        return await changed(lambda album: album.add(pictures, label, new))

    async def move(request: Request) -> Response:
        label, new = await named(request)
        keys = request.query_params.getlist("key")
        return await changed(lambda album: album.move(keys, label, new))

    async def add_class(request: Request) -> Response:
        new = await new_class(request.query_params.get("label", ""))
        return await changed(lambda album: album.add_class(new))

    async def drop_class(request: Request) -> Response:
        label = request.query_params.get("label", "")
        return await changed(lambda album: album.drop_class(label))

    async def remove(request: Request) -> Response:
        return await changed(lambda album: album.remove(request.query_params.getlist("key")))

    async def undo(request: Request) -> Response:
        return await changed(Album.undo)

    async def download(request: Request) -> Response:
        content = await asyncio.to_thread(live.file)
        saved_as = {"Content-Disposition": 'attachment; filename="head.safetensors"'}
        return Response(content, media_type="application/octet-stream", headers=saved_as)

    guarded = partial(_guarded, host=host, token=token)
    routes = [
        *(Route(path, guarded(_static(*file)), methods=["GET"]) for path, file in PAGE.items()),
        Route("/api/head", guarded(about), methods=["GET"]),
        Route("/api/head.safetensors", guarded(download), methods=["GET"]),
        Route("/api/predict", guarded(predict), methods=["POST"]),
        Route("/api/pictures", guarded(pictures), methods=["GET"]),
        Route("/api/shots", guarded(add), methods=["POST"]),
        Route("/api/shots/move", guarded(move), methods=["POST"]),
        Route("/api/shots/remove", guarded(remove), methods=["POST"]),
        Route("/api/classes", guarded(add_class), methods=["POST"]),
        Route("/api/classes/remove", guarded(drop_class), methods=["POST"]),
        Route("/api/undo", guarded(undo), methods=["POST"]),
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


def _static(folder: Traversable, name: str) -> Answer:
    content = folder.joinpath(name).read_bytes()
    kind = KINDS[name[name.rindex(".") :]]

    async def answer(request: Request) -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8")

    return answer
