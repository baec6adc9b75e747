"""`kshot explain`: why a head says what it says."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.predict import BackboneOption, WeightsOption
from kshot.cli.shared import console


def explain(
    picture: Annotated[Path, typer.Argument(help="Picture file.")],
    head: Annotated[Path, typer.Option(help="Head file that `kshot fit` wrote.")] = Path("head.safetensors"),
    shots: Annotated[int, typer.Option(min=1, help="Nearest shots to show.")] = 5,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
) -> None:
    """The nearest shots, and how much the names and the pictures say for each of the likeliest classes."""
    from rich.table import Table
    from rich.text import Text

    from kshot.apply.head import PictureHead
    from kshot.apply.predict import encode_one, evidence, head_encoder, judge, nearest_shots

    loaded = PictureHead.load(head)
    feature = encode_one(head_encoder(loaded, backbone, weights), picture).feature
    typer.echo(f"{picture}: {judge(loaded, str(picture), feature).answer}")
    table = Table("class", "probability", "from the name", "from the pictures")
    for one in evidence(loaded, feature):
        table.add_row(
            Text(one.name), f"{100 * one.probability:.1f} %", f"{one.text:+.2f}", f"{one.pictures:+.2f}"
        )
    console().print(table)
    typer.echo("evidence in logits above the mean class; the two columns add up to what the softmax sees.")
    near = Table("nearest shot", "class", "cosine")
    for one in nearest_shots(loaded, feature, shots):
        near.add_row(Text(one.name), Text(one.label), f"{one.cosine:.3f}")
    console().print(near)
