"""`kshot serve`: a head behind a web page and a JSON API."""

from typing import Annotated

import typer

from kshot.cli.predict import BackboneOption, HeadArgument, WeightsOption


def serve(
    head: HeadArgument,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond loopback only with a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8642,
    token: Annotated[
        str | None, typer.Option(envvar="KSHOT_TOKEN", help="Asked of every request, as a bearer token.")
    ] = None,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
) -> None:
    """Drop pictures, see predictions with the nearest shots, add labelled pictures and refit."""
    from kshot.apply.predict import head_encoder
    from kshot.apply.serve.guards import check_binding
    from kshot.errors import need

    check_binding(host, token)
    uvicorn = need("uvicorn", "serve")
    need("starlette", "serve")
    from kshot.apply.head import PictureHead
    from kshot.apply.serve.app import make_app
    from kshot.apply.serve.live import LiveHead

    live = LiveHead(head, head_encoder(PictureHead.load(head), backbone, weights))
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"http://{shown}:{port}/{f'#token={token}' if token else ''} (stop with Ctrl-C)")
    app = make_app(live, host, token)
    uvicorn.run(
        app, host=host, port=port, log_level="warning", limit_concurrency=64, server_header=False, ws="none"
    )
