"""`kshot predict`, `export` and `serve`: use a head that `kshot fit` wrote."""

import csv
import json
import os
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from kshot.cli.fit import HeadArgument
from kshot.cli.shared import DeviceOption, WeightsOption, console
from kshot.encode.pictures import SUFFIXES, visible_files
from kshot.errors import SHOW_CONTROLS, InputError, need
from kshot.pictures.encoded import encode_files
from kshot.pictures.export import export_onnx
from kshot.pictures.head import PictureHead
from kshot.pictures.photos import UNSUPPORTED, listed
from kshot.pictures.predict import Prediction, evidence, head_encoder, nearest_shots, predict_files
from kshot.pictures.together import together
from kshot.report.table import Number, Table, csv_text, signed
from kshot.types import Array

# Names of files may hold anything.
ONE_LINE = SHOW_CONTROLS | {9: "\\x09", 10: "\\x0a"}
BackboneOption = Annotated[str | None, Option("--backbone", help="Encoder; the head's own unless given.")]


def predict(
    head: HeadArgument,
    pictures: Annotated[list[Path], Argument(help="Picture files, or folders of them.")],
    top: Annotated[int, Option(min=1, help="Classes per picture in CSV and JSON.")] = 3,
    threshold: Annotated[
        float | None, Option(min=0, max=1, help="Unsure below it; by the head's own rule unless given, 0 for never.")
    ] = None,
    format: Annotated[Literal["table", "csv", "json"], Option(help="How to print.")] = "table",
    nearest: Annotated[int, Option(min=0, help="Show so many nearest shots and the evidence for the answer.")] = 0,
    batch: Annotated[
        bool, Option("--together", help="Let the pictures help each other, where training pictures gain by it.")
    ] = False,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Print the classes of pictures with calibrated probabilities; exit code 1 if a picture cannot be read."""
    loaded = PictureHead.load(head)
    files = [file for given in pictures for file in _files(given)]
    encoder = head_encoder(loaded, backbone, weights, device)
    if batch and nearest:
        raise InputError("--nearest explains one picture, --together answers all at once. Leave one of them out.")
    if batch:
        loaded, done = together(loaded, files, encoder)
        typer.echo(done, err=True)
    if loaded.about.caveat and threshold is None:
        typer.echo(f"note: {loaded.about.caveat}.", err=True)
    found = predict_files(loaded, files, top, threshold, encoder)
    if nearest:
        # The features come from the cache.
        for one, encoded in zip(found, encode_files(encoder, files), strict=True):
            if not isinstance(encoded, InputError):
                _print_evidence(loaded, one, encoded.feature, nearest)
    elif format == "table":
        _print_table(found)
    elif format == "csv":
        _print_csv(found)
    else:
        rows = [asdict(one) | {"answer": None if one.error else one.answer} for one in found]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    if any(one.error for one in found):
        raise typer.Exit(1)


def _files(given: Path) -> list[Path]:
    """List the pictures of a folder, also of formats that cannot be read, which get an error each."""
    if not given.is_dir():
        return [given]
    pictures = sorted(path for path in visible_files(given) if path.suffix.lower() in SUFFIXES | UNSUPPORTED)
    if not pictures:
        raise InputError(f"{given} holds no pictures.")
    return pictures


def _print_table(found: list[Prediction]) -> None:
    """One line a picture, cut to a terminal's width; errors and the closing line go to stderr."""
    screen, read = console(), [one for one in found if not one.error]
    names = [one.picture for one in read]
    if screen.is_terminal and len({Path(name).parent for name in names}) == 1:
        names = [Path(name).name for name in names]
    rows = [("picture", "answer", "", "one of" if any(one.one_of for one in read) else "likeliest")]
    rows += [(n, one.answer, f"{one.top[0].probability:.0%}", _others(one)) for n, one in zip(names, read, strict=True)]
    rows = [tuple(text.translate(ONE_LINE) for text in row) for row in rows]
    name, answer = (max(len(row[column]) for row in rows) for column in (0, 1))
    if screen.is_terminal:
        answer = min(answer, screen.width // 4)
        name = min(name, max(screen.width // 3, screen.width - answer - 40))
    for picture, label, probability, others in rows if read else ():
        line = f"{_shortened(picture, name):{name}}  {_shortened(label, answer):{answer}}  {probability:>4}  {others}"
        cut = screen.is_terminal and len(line) > screen.width
        typer.echo(line[: screen.width - 1] + "…" if cut else line.rstrip())
    for one in found:
        if one.error:
            typer.echo(f"not read: {one.error}".translate(ONE_LINE), err=True)
    typer.echo(_summary(found), err=True)


def _others(one: Prediction) -> str:
    """The set of classes that may be right, or without one the likeliest classes."""
    return ", ".join(one.one_of) or ", ".join(f"{guess.name} {guess.probability:.0%}" for guess in one.top)


def _shortened(text: str, width: int) -> str:
    """The text, without its middle where it is too long."""
    head = (width - 1) // 2
    return text if len(text) <= width else f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _summary(found: list[Prediction]) -> str:
    answers = Counter(one.answer for one in found if not one.error)
    counted = listed([f"{count} {name}" for name, count in answers.most_common()])
    unread = len(found) - answers.total()
    line = (
        f"{answers.total()} pictures" + (f": {counted}" if counted else "") + (f"; {unread} not read" if unread else "")
    )
    return line.translate(ONE_LINE)


def _print_csv(found: list[Prediction]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["picture", "answer", "rank", "class", "probability", "one_of", "error"])
    for one in found:
        if one.error:
            writer.writerow(map(csv_text, [one.picture, "", "", "", "", "", one.error]))
        for rank, guess in enumerate(one.top, 1):
            row = [one.picture, one.answer, rank, guess.name, f"{guess.probability:.6f}", "; ".join(one.one_of), ""]
            writer.writerow(map(csv_text, row))


def _print_evidence(head: PictureHead, prediction: Prediction, feature: Array, nearest: int) -> None:
    """Print a picture's nearest shots, and how much names and shots add to its likeliest classes."""
    typer.echo(f"{prediction.picture}: {prediction.answer}")
    rows = tuple(
        (one.name, Number(one.probability, ".1%"), signed(one.text), signed(one.pictures))
        for one in evidence(head, feature)
    )
    columns = ("class", "probability", "from the name", "from the pictures")
    caption = "Evidence in logits above the mean class; the sum of both columns goes into the softmax."
    console().print(Table("Evidence", columns, rows, caption))
    near = tuple((one.name, one.label, Number(one.cosine, ".3f")) for one in nearest_shots(head, feature, nearest))
    console().print(Table("Nearest shots", ("nearest shot", "class", "cosine"), near, ""))


def export(
    head: HeadArgument,
    onnx: Annotated[Path, Option("--onnx", help="ONNX file to write.")],
    head_only: Annotated[bool, Option("--head-only", help="Without the encoder; the input is features.")] = False,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Write encoder and head as one ONNX file with the class names."""
    loaded = PictureHead.load(head)
    export_onnx(loaded, onnx, None if head_only else head_encoder(loaded, backbone, weights, device))
    source = f"features (n, {loaded.shots.X.shape[1]}) of {loaded.about.backbone}" if head_only else "pictures"
    typer.echo(f"wrote {onnx}: {source} to probabilities of {len(loaded.about.classes)} classes")
    name = "features" if head_only else "picture"
    shape = "float32 (n, d)" if head_only else "uint8 (height, width, 3), RGB"
    typer.echo(f'use: onnxruntime.InferenceSession("{onnx}").run(None, {{"{name}": array}})[0]  # {shape}')


def serve(
    head: HeadArgument,
    host: Annotated[str, Option(help="Address to listen on; beyond loopback only with a token.")] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65535, help="Port to listen on.")] = 8642,
    token_file: Annotated[Path | None, Option(help="File of the token; KSHOT_TOKEN or a new one unless given.")] = None,
    no_token: Annotated[bool, Option("--no-token", help="No token; loopback addresses only.")] = False,
    backbone: BackboneOption = None,
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Serve a head as a web page and a JSON API: predict, show why, learn a picture that was named."""
    need("uvicorn", "serve")
    need("starlette", "serve")
    from kshot.pictures.live import LiveHead
    from kshot.pictures.serve import check_binding, make_app, make_server, read_token

    token = None if no_token else read_token(token_file, os.environ.get("KSHOT_TOKEN"))
    check_binding(host, token)

    live = LiveHead(head, head_encoder(PictureHead.load(head), backbone, weights, device))
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"http://{shown}:{port}/{f'#token={token}' if token else ''} (stop with Ctrl-C)")
    make_server(make_app(live, host, token), host, port).run()
