"""`kshot export`: a head for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.predict import HeadArgument


def export(
    head: HeadArgument, onnx: Annotated[Path, typer.Option("--onnx", help="ONNX file to write.")]
) -> None:
    """The head as an ONNX graph from features to probabilities, with class names and encoder in its metadata."""
    from kshot.apply.export import export_onnx
    from kshot.apply.head import PictureHead

    loaded = PictureHead.load(head)
    export_onnx(loaded, onnx)
    typer.echo(
        f"wrote {onnx}: features (n, {loaded.shots.X.shape[1]}) of {loaded.about.backbone} to "
        f"probabilities of {len(loaded.about.classes)} classes"
    )
