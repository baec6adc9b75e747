"""`kshot predict`: what a head says of pictures."""

import csv
import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import console

if TYPE_CHECKING:
    from kshot.pictures.predict import Prediction


class AnswerFormat(StrEnum):
    """How predictions are printed."""

    table = "table"
    csv = "csv"
    json = "json"


HeadArgument = Annotated[Path, typer.Argument(help="Head file that `kshot fit` wrote.")]
BackboneOption = Annotated[str | None, typer.Option(help="Encoder; the head's own unless given.")]
WeightsOption = Annotated[Path | None, typer.Option(help="Local checkpoint of the encoder.")]


def predict(
    head: HeadArgument,
    pictures: Annotated[list[Path], typer.Argument(help="Picture files, or folders of them.")],
    top: Annotated[int, typer.Option(min=1, help="Classes to show per picture.")] = 3,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Below it: none of these. The head's own unless given; 0 for never."),
    ] = None,
    format: Annotated[AnswerFormat, typer.Option(help="How to print.")] = AnswerFormat.table,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
) -> None:
    """Classes with calibrated probabilities; exits with 1 if a picture could not be read."""
    from kshot.pictures.head import PictureHead
    from kshot.pictures.predict import head_encoder, predict_files

    loaded = PictureHead.load(head)
    files = [file for given in pictures for file in _files(given)]
    answers = predict_files(loaded, files, top, threshold, head_encoder(loaded, backbone, weights))
    _PRINT[format](answers)
    if any(one.error for one in answers):
        raise typer.Exit(1)


def _files(given: Path) -> list[Path]:
    """What looks like a picture; formats that are not read are answered with an error, as damaged pictures are."""
    from kshot.encode.pictures import SUFFIXES, visible_files
    from kshot.errors import InputError
    from kshot.pictures.photos import UNSUPPORTED

    if not given.is_dir():
        return [given]
    pictures = sorted(path for path in visible_files(given) if path.suffix.lower() in SUFFIXES | UNSUPPORTED)
    if not pictures:
        raise InputError(f"{given} holds no pictures.")
    return pictures


def _table(found: "list[Prediction]") -> None:
    from kshot.pictures.photos import listed
    from kshot.report.table import Table

    rows = [
        (one.picture, one.answer, ", ".join(f"{g.name} {100 * g.probability:.0f} %" for g in one.top)) for one in found
    ]
    columns = ("picture", "answer", "likeliest classes")
    if any(one.one_of for one in found):
        columns = (*columns, "one of (right 95 times in 100)")
        rows = [(*row, listed(one.one_of)) for row, one in zip(rows, found, strict=True)]
    console().print(Table("Predictions", columns, tuple(rows), ""))


def _csv(found: "list[Prediction]") -> None:
    from kshot.report.table import csv_text

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["picture", "answer", "rank", "class", "probability", "one_of", "error"])
    for one in found:
        if one.error:
            writer.writerow(map(csv_text, [one.picture, "", "", "", "", "", one.error]))
        for rank, guess in enumerate(one.top, 1):
            row = [one.picture, one.answer, rank, guess.name, f"{guess.probability:.6f}", "; ".join(one.one_of), ""]
            writer.writerow(map(csv_text, row))


def _json(found: "list[Prediction]") -> None:
    rows = [asdict(one) | {"answer": None if one.error else one.answer} for one in found]
    typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))


_PRINT = {AnswerFormat.table: _table, AnswerFormat.csv: _csv, AnswerFormat.json: _json}
