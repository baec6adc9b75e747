"""The page and the JSON API. Pictures come as the raw body of a request: nothing a client sends names a file."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server

from kshot.errors import KshotError
from kshot.pictures.album import Album
from kshot.pictures.encoded import ClassText
from kshot.pictures.serve.guards import HEADERS, Refused, check_request, limited_body, split_body
from kshot.pictures.serve.live import LiveHead

# Each may hold a picture of 20 MB; uvicorn answers more with 503.
MOST_CONNECTIONS = 64
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
SERVE, REPORT = files("kshot.pictures.serve"), files("kshot.report").joinpath("page")
SCRIPTS = ("page.js", "server.js", "tries.js", "album.js", "choice.js", "newclass.js")
# The page has the colours, type and controls of the report.
PAGE = {
    "/": SERVE.joinpath("page.html"),
    **{f"/{name}": SERVE.joinpath(name) for name in ("page.css", *SCRIPTS)},
    **{f"/{name}": REPORT.joinpath(name) for name in ("shared.css", "theme.js")},
}
Answer = Callable[[Request], Awaitable[Response]]


def make_server(app: Any, host: str, port: int) -> Server:
    """A server for the app; the size of headers and the time that a connection may idle are uvicorn's."""
    limits = {"limit_concurrency": MOST_CONNECTIONS, "headers": [*HEADERS.items()]}
    return Server(Config(app, host=host, port=port, log_level="warning", ws="none", **limits))


def make_app(live: LiveHead, host: str, token: str | None) -> Starlette:
    """An ASGI application. One request at a time is encoded and one refit runs; predictions do not wait for it."""
    encoding, fitting = asyncio.Lock(), asyncio.Lock()

    async def encode(work: Callable[..., Any], *given: Any) -> Any:
        async with encoding:
            return await asyncio.to_thread(work, *given)

    async def changed(edit: Callable[[Album], Album]) -> Response:
        """Answer when the change is learnt and on disk. Return at once if another refit already covered it."""
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
        return JSONResponse(live.pictures(request.query_params.get("label"), int(start[:9])))

    async def predict(request: Request) -> Response:
        return JSONResponse(await encode(live.predict, await limited_body(request)))

    async def target(request: Request) -> tuple[str, ClassText | None]:
        """The class of the request; with `new`, also the text of a class that the album does not have."""
        label = request.query_params.get("label", "")
        if "new" not in request.query_params or label in live.album.classes:
            return label, None
        return label.strip(), await encode(live.encode_name, label.strip())

    async def add(request: Request) -> Response:
        contents = split_body(await limited_body(request), request.query_params.getlist("size"))
        pictures = await encode(live.encode, contents)
        label, text = await target(request)
        return await changed(lambda album: album.add(pictures, label, text))

    async def move(request: Request) -> Response:
        label, text = await target(request)
        keys = request.query_params.getlist("key")
        return await changed(lambda album: album.move(keys, label, text))

    async def remove(request: Request) -> Response:
        return await changed(lambda album: album.remove(request.query_params.getlist("key")))

    async def add_class(request: Request) -> Response:
        name = request.query_params.get("label", "").strip()
        text = await encode(live.encode_name, name)
        return await changed(lambda album: album.add_class(name, text))

    async def drop_class(request: Request) -> Response:
        return await changed(lambda album: album.drop_class(request.query_params.get("label", "")))

    async def undo(request: Request) -> Response:
        return await changed(Album.undo)

    async def download(request: Request) -> Response:
        saved_as = {"Content-Disposition": 'attachment; filename="head.safetensors"'}
        content = await asyncio.to_thread(live.file)
        return Response(content, media_type="application/octet-stream", headers=saved_as)

    def route(method: str, path: str, answer: Answer) -> Route:
        async def checked(request: Request) -> Response:
            check_request(request, host, token)
            return await answer(request)

        return Route(path, checked, methods=[method])

    routes = [
        *(route("GET", path, _page) for path in PAGE),
        route("GET", "/api/head", about),
        route("GET", "/api/head.safetensors", download),
        route("POST", "/api/predict", predict),
        route("GET", "/api/pictures", pictures),
        route("POST", "/api/shots", add),
        route("POST", "/api/shots/move", move),
        route("POST", "/api/shots/remove", remove),
        route("POST", "/api/classes", add_class),
        route("POST", "/api/classes/remove", drop_class),
        route("POST", "/api/undo", undo),
    ]
    return Starlette(routes=routes, exception_handlers={KshotError: _error})


async def _error(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, getattr(error, "status", 400))


async def _page(request: Request) -> Response:
    file = PAGE[request.url.path]
    return Response(file.read_bytes(), media_type=KINDS[file.name.rpartition(".")[2]])
