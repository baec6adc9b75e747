"""`kshot serve`: a head behind a web page and a JSON API."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.predict import BackboneOption, HeadArgument, WeightsOption


def serve(
    head: HeadArgument,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond loopback only with a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8642,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the bearer token; KSHOT_TOKEN, or a new one each time, unless given."),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Everybody on this machine may use the head; loopback only.")
    ] = False,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
) -> None:
    """Drop pictures, see predictions with the nearest shots, add labelled pictures and refit."""
    from kshot.errors import need
    from kshot.pictures.predict import head_encoder
    from kshot.pictures.serve.guards import check_binding, read_token

    token = None if no_token else read_token(token_file, os.environ.get("KSHOT_TOKEN"))
    check_binding(host, token)
    need("uvicorn", "serve")
    need("starlette", "serve")
    from kshot.pictures.head import PictureHead
    from kshot.pictures.serve.app import make_app, make_server
    from kshot.pictures.serve.live import LiveHead

    live = LiveHead(head, head_encoder(PictureHead.load(head), backbone, weights))
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"http://{shown}:{port}/{f'#token={token}' if token else ''} (stop with Ctrl-C)")
    make_server(make_app(live, host, token), host, port).run()
