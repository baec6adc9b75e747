"""`kshot fit`: fit a head to folders of pictures, and report its accuracy."""

from dataclasses import astuple
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.cli.shared import DeviceOption, WeightsOption, console
from kshot.encode.encoders import stronger_backbone
from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.pictures.assess import Assessment
from kshot.pictures.fit import Fitted, fit_folder
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import Interval
from kshot.pictures.photos import existing_folder, listed
from kshot.pictures.predict import head_encoder
from kshot.pictures.suggest import suggest_files, unlabelled_files
from kshot.report.table import Table, count

# With more classes the commonest confusions are listed instead of the whole table.
WIDEST_TABLE = 12
MOST_LISTED = 10
HeadArgument = Annotated[Path, Argument(help="Head file that `kshot fit` wrote.")]
ForceOption = Annotated[bool, Option("--force", help="Replace the head file if it exists.")]


def fit(
    photos: Annotated[Path, Argument(help="Folder that holds one folder of pictures per class.")],
    output: Annotated[Path, Option("--output", "-o", help="Head file to write.")] = Path("head.safetensors"),
    names: Annotated[Path | None, Option(help="File of FOLDER=NAME lines.")] = None,
    labels: Annotated[Path | None, Option(help="CSV file of path,label instead of folders.")] = None,
    backbone: Annotated[str, Option(help="Encoder, as `kshot encode` takes it.")] = "lite0",
    prompt: Annotated[str, Option(help="Sentence with {} for the class name.")] = "a photo of a {}.",
    method: Annotated[str, Option(help="auto (by the benchmark's advice), loo_blend, zero_shot …")] = "auto",
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
    suggest: Annotated[tuple[int, Path] | None, Option(metavar="N FOLDER", help="Name N to label next.")] = None,
    force: ForceOption = False,
) -> None:
    """Fit a head to folders of pictures and report its accuracy on pictures it has not seen."""
    existing_folder(photos)
    _check_new(output, force)
    unlabelled = unlabelled_files(suggest[1]) if suggest is not None else []
    used = {"backbone": backbone, "weights": weights, "device": device}
    fitted = fit_folder(photos, prompt=prompt, names=names, labels=labels, method=method, **used)
    fitted.head.save(output)
    _print_fitted(fitted)
    if suggest is not None:
        _suggest(fitted.head, unlabelled, suggest[0], head_encoder(fitted.head, **used))
    if (stronger := stronger_backbone(backbone)) is not None:
        typer.echo(f"a CLIP is stronger than {backbone}: kshot fit {photos} --backbone {stronger}")
    typer.echo(f"wrote {output}; next: kshot predict {output} PICTURE…")


def _check_new(output: Path, force: bool) -> None:
    if output.exists() and not force:
        raise InputError(f"{output} exists. Replace it with --force, or name another file with -o.")


def _suggest(head: PictureHead, files: list[Path], count: int, encoder: Encoder) -> None:
    found = suggest_files(head, files, count, encoder)
    for problem in found.unreadable:
        typer.echo(f"left out: {problem}")
    if found.known:
        typer.echo(f"left out: {found.known} pictures that the head was trained on.")
    for one in found.chosen:
        guesses = " or ".join(f"{guess.name} {100 * guess.probability:.0f} %" for guess in one.top)
        typer.echo(f"label next: {one.picture} ({guesses}?)")


def _print_fitted(fitted: Fitted) -> None:
    """Print the accuracy, what was left out, the classes and confusions, and what to improve."""
    head, assessment = fitted.head, fitted.assessment
    about = head.about
    typer.echo(f"{len(head.shots.y)} pictures of {len(about.classes)} classes, encoded by {about.backbone}.")
    if assessment.accuracy is not None:
        typer.echo(f"Of new pictures like these about {_percent(assessment.accuracy)} will be right.")
        if about.caveat:
            typer.echo(f"{about.caveat[0].upper()}{about.caveat[1:]}.")
    if fitted.tested is not None:
        typer.echo(f"Of the pictures of the test folder {_percent(fitted.tested)} are right.")
    if assessment.verdict:
        typer.echo(assessment.verdict[0].upper() + assessment.verdict[1:])
    for note in fitted.notes:
        typer.echo(f"note: {note}")
    for problem in fitted.unreadable:
        typer.echo(f"left out: {problem}")
    if fitted.copies:
        typer.echo(f"left out: copies of other pictures of their class: {listed(fitted.copies)}")
    typer.echo(f"{head.head.info.title}: {about.reason}.")
    if assessment.accuracy is None:
        typer.echo(f"  names alone (zero-shot): {_percent(assessment.zero_shot)} of {len(head.shots.y)} pictures")
        return _print_advice(fitted)
    right = sum(row[c] for c, row in enumerate(assessment.confusion))
    typer.echo(
        f"  measured on {assessment.measured} pictures, each scored by a head that had not seen it: {right} right; "
        f"names alone {_percent(assessment.zero_shot)}"
    )
    _print_classes(about.classes, head.shots.counts.tolist(), assessment)
    _print_confusions(about.classes, assessment)
    _print_advice(fitted)


def _percent(share: Interval | None) -> str:
    if share is None:
        return "not measurable with so few pictures"
    return f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _print_classes(classes: tuple[str, ...], counts: list[int], found: Assessment) -> None:
    order = sorted(range(len(classes)), key=lambda c: own.value if (own := found.per_class[c]) else 2.0)
    rows = tuple((classes[c], count(counts[c]), _percent(found.per_class[c])) for c in order[: 3 * MOST_LISTED])
    console().print(Table("By class", ("class", "pictures", "left-out accuracy [9 in 10]"), rows, ""))
    if len(order) > 3 * MOST_LISTED:
        typer.echo(f"(the {3 * MOST_LISTED} weakest of {len(order)} classes)")


def _print_confusions(classes: tuple[str, ...], found: Assessment) -> None:
    if len(classes) <= WIDEST_TABLE:
        rows = tuple(
            (name, *(str(n) if n else "·" for n in row)) for name, row in zip(classes, found.confusion, strict=True)
        )
        console().print(Table("Confusions", ("is, taken for →", *classes), rows, ""))
        return
    pairs = [
        (n, classes[i], classes[j]) for i, row in enumerate(found.confusion) for j, n in enumerate(row) if n and i != j
    ]
    for n, is_, taken in sorted(pairs, reverse=True)[:MOST_LISTED]:
        typer.echo(f"  {is_} taken for {taken}: {n}")


def _print_advice(fitted: Fitted) -> None:
    head, assessment = fitted.head, fitted.assessment
    names, classes, y = head.about.shot_names, head.about.classes, head.shots.y
    for one in assessment.suspects[:MOST_LISTED]:
        says = f"{classes[one.predicted]} ({100 * one.probability:.0f} %)"
        typer.echo(f"look again: {names[one.row]} may be {says}, not {classes[y[one.row]]}")
    for first, second in fitted.near_duplicates[:MOST_LISTED]:
        where = "in two classes" if y[first] != y[second] else "twice"
        typer.echo(f"look again: the same picture {where}: {names[first]}, {names[second]}")
    single = [classes[c] for c, n in enumerate(head.shots.counts) if n == 1]
    if single:
        typer.echo(f"needs more pictures (one only, so not measured): {listed(single)}")
    mean = assessment.accuracy
    weak = [classes[c] for c, own in enumerate(assessment.per_class) if own and mean and own.high < mean.value]
    if weak:
        typer.echo(f"needs more pictures (recognised less often than the rest): {listed(weak)}")
    if assessment.next_shot is not None:
        more = [100 * share for share in astuple(assessment.next_shot)]
        typer.echo(f"one more picture per class: about {more[0]:+.1f} points [{more[1]:+.1f}, {more[2]:+.1f}]")
