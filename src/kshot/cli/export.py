"""`kshot export`: a head for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.predict import BackboneOption, HeadArgument, WeightsOption


def export(
    head: HeadArgument,
    onnx: Annotated[Path, typer.Option("--onnx", help="ONNX file to write.")],
    head_only: Annotated[
        bool, typer.Option("--head-only", help="Without the encoder: a graph that takes its features.")
    ] = False,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
) -> None:
    """Encoder and head as one ONNX graph from pictures to probabilities, with the class names in its metadata."""
    from kshot.pictures.export import export_onnx
    from kshot.pictures.head import PictureHead
    from kshot.pictures.predict import head_encoder

    loaded = PictureHead.load(head)
    export_onnx(loaded, onnx, None if head_only else head_encoder(loaded, backbone, weights))
    given = f"features (n, {loaded.shots.X.shape[1]}) of {loaded.about.backbone}" if head_only else "pictures"
    typer.echo(f"wrote {onnx}: {given} to probabilities of {len(loaded.about.classes)} classes")
