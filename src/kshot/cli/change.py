"""`kshot change`: classes added to a head or dropped from it; `kshot labels`: what its pictures are labelled."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.fit import ForceOption, check_new, tell_fitted
from kshot.cli.predict import HeadArgument, WeightsOption


def change(
    head: HeadArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Head file to write.")],
    add: Annotated[
        Path | None, typer.Option(help="Folder that holds one folder of pictures per class, new classes or known ones.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Class to drop. Repeatable.")] = None,
    weights: WeightsOption = None,
    force: ForceOption = False,
) -> None:
    """Add pictures and classes to a head, or drop classes; the old pictures are not needed."""
    from kshot.errors import InputError
    from kshot.pictures.fit import change_head
    from kshot.pictures.head import PictureHead
    from kshot.pictures.predict import head_encoder

    if add is None and not drop:
        raise InputError("nothing to change. Give --add FOLDER, --drop CLASS or both.")
    check_new(output, force)
    before = PictureHead.load(head)
    encoder = head_encoder(before, weights=weights) if add is not None else None
    fitted = change_head(before, encoder, add, drop or ())
    fitted.head.save(output)
    tell_fitted(fitted)
    typer.echo(f"wrote {output}; next: kshot predict {output} PICTURE…")


def labels(
    head: HeadArgument, format: Annotated[str, typer.Option(help="csv, label-studio or fiftyone.")] = "csv"
) -> None:
    """Print the labels of a head's pictures, for `kshot fit --labels` and for other programs."""
    from kshot.pictures.head import PictureHead
    from kshot.pictures.label_files import write_label_file

    loaded = PictureHead.load(head)
    about = loaded.about
    own = [about.classes[label] for label in loaded.shots.y]
    typer.echo(write_label_file(about.shot_names, own, about.classes, format), nl=format != "csv")
