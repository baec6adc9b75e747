"""`kshot explain`: why a head says what it says."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.predict import BackboneOption, HeadArgument, WeightsOption
from kshot.cli.shared import console


def explain(
    head: HeadArgument,
    picture: Annotated[Path, typer.Argument(help="Picture file.")],
    nearest: Annotated[int, typer.Option(min=1, help="Nearest shots to show.")] = 5,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
) -> None:
    """The nearest shots, and how much the names and the pictures say for each of the likeliest classes."""
    from kshot.pictures.head import PictureHead
    from kshot.pictures.predict import encode_one, evidence, head_encoder, nearest_shots, predict_feature
    from kshot.report.table import Number, Table, signed

    loaded = PictureHead.load(head)
    feature = encode_one(head_encoder(loaded, backbone, weights), picture).feature
    typer.echo(f"{picture}: {predict_feature(loaded, str(picture), feature).answer}")
    rows = tuple(
        (one.name, Number(one.probability, ".1%"), signed(one.text), signed(one.pictures))
        for one in evidence(loaded, feature)
    )
    columns = ("class", "probability", "from the name", "from the pictures")
    caption = "Evidence in logits above the mean class; the two columns add up to what the softmax sees."
    console().print(Table("Why", columns, rows, caption))
    near = tuple((one.name, one.label, Number(one.cosine, ".3f")) for one in nearest_shots(loaded, feature, nearest))
    console().print(Table("What it is near to", ("nearest shot", "class", "cosine"), near, ""))
