"""`kshot fit`: a head for one's own pictures, with an honest report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import console

if TYPE_CHECKING:
    from kshot.pictures.assess import Assessment
    from kshot.pictures.fit import Fitted
    from kshot.pictures.head import PictureHead
    from kshot.pictures.held_out import Interval

# A confusion table wider than this is a list of the commonest confusions instead.
WIDEST_TABLE = 12
MOST_LISTED = 10
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the head file if it exists.")]


def fit(
    photos: Annotated[Path, typer.Argument(help="Folder that holds one folder of pictures per class.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Head file to write.")] = Path("head.safetensors"),
    names: Annotated[Path | None, typer.Option(help="File of FOLDER=NAME lines.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="What the pictures show: CSV, or JSON of Label Studio or FiftyOne, instead of folders."),
    ] = None,
    backbone: Annotated[str, typer.Option(help="Encoder; a name of `kshot ls backbones`.")] = "lite0",
    prompt: Annotated[str, typer.Option(help="Sentence with {} for the class name.")] = "a photo of a {}.",
    method: Annotated[
        str, typer.Option(help="auto follows the benchmark's advice; loo_blend, zero_shot, … on request.")
    ] = "auto",
    weights: Annotated[Path | None, typer.Option(help="Local checkpoint of the encoder.")] = None,
    suggest: Annotated[
        tuple[int, Path] | None,
        typer.Option(metavar="N FOLDER", help="Also say which N pictures of FOLDER to label next."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Encode the pictures, choose and fit a head, and say how good it is on pictures it has not seen."""
    from kshot.pictures.fit import fit_folder
    from kshot.pictures.photos import existing_folder
    from kshot.pictures.suggest import unlabelled_files

    existing_folder(photos)
    check_new(output, force)
    unlabelled = unlabelled_files(suggest[1]) if suggest is not None else []
    fitted = fit_folder(
        photos, backbone=backbone, prompt=prompt, names=names, labels=labels, method=method, weights=weights
    )
    fitted.head.save(output)
    tell_fitted(fitted)
    if suggest is not None:
        _suggest(fitted.head, unlabelled, suggest[0], weights)
    typer.echo(f"wrote {output}; next: kshot predict {output} PICTURE…")


def check_new(output: Path, force: bool) -> None:
    from kshot.errors import InputError

    if output.exists() and not force:
        raise InputError(f"{output} exists. Replace it with --force, or name another file with -o.")


def _suggest(head: "PictureHead", files: list[Path], count: int, weights: Path | None) -> None:
    from kshot.pictures.predict import head_encoder
    from kshot.pictures.suggest import suggest_files

    found = suggest_files(head, files, count, head_encoder(head, weights=weights))
    for problem in found.unreadable:
        typer.echo(f"left out: {problem}")
    if found.known:
        typer.echo(f"left out: {found.known} pictures that the head has learnt from.")
    for one in found.chosen:
        taken = " or ".join(f"{guess.name} {100 * guess.probability:.0f} %" for guess in one.top)
        typer.echo(f"label next: {one.picture} ({taken}?)")


def tell_fitted(fitted: "Fitted") -> None:
    """What is known of a new head, in the order in which a person asks."""
    head, assessment = fitted.head, fitted.assessment
    title = head.head.info.title
    for note in fitted.notes:
        typer.echo(f"note: {note}")
    for problem in fitted.unreadable:
        typer.echo(f"left out: {problem}")
    if fitted.copies:
        typer.echo(f"left out: copies of other pictures of their class: {_some(fitted.copies)}")
    typer.echo(f"{title}: {head.about.reason}.")
    _accuracies(title, assessment, len(head.shots.y))
    if fitted.tested is not None:
        typer.echo(f"  {_percent(fitted.tested).strip()} on the pictures of the test folder.")
    typer.echo(assessment.verdict)
    if assessment.accuracy is not None:
        _per_class(head.about.classes, head.shots.counts.tolist(), assessment)
        _confusion(head.about.classes, assessment)
    _advice(fitted)


def _accuracies(title: str, found: "Assessment", pictures: int) -> None:
    rows = {title: found.accuracy, "Zero-shot": found.zero_shot, "LOO blend": found.blend}
    for name, value in rows.items():
        typer.echo(f"  {name:10} {_percent(value)}")
    if found.accuracy is None:
        typer.echo(f"  on {pictures} pictures, of which zero-shot had seen none.")
    else:
        typer.echo(f"  on {found.measured} pictures, each scored by a head that had not seen it.")


def _percent(value: "Interval | None") -> str:
    if value is None:
        return "not measurable with so few pictures"
    return f"{100 * value.value:5.1f} % [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def _per_class(classes: tuple[str, ...], counts: list[int], found: "Assessment") -> None:
    from kshot.report.table import Table, count

    order = sorted(range(len(classes)), key=lambda c: own.value if (own := found.per_class[c]) else 2.0)
    rows = tuple((classes[c], count(counts[c]), _percent(found.per_class[c])) for c in order[: 3 * MOST_LISTED])
    console().print(Table("By class", ("class", "pictures", "left-out accuracy [95 %]"), rows, ""))
    if len(order) > 3 * MOST_LISTED:
        typer.echo(f"(the {3 * MOST_LISTED} weakest of {len(order)} classes)")


def _confusion(classes: tuple[str, ...], found: "Assessment") -> None:
    from kshot.report.table import Table

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


def _advice(fitted: "Fitted") -> None:
    head, assessment = fitted.head, fitted.assessment
    names, classes, y = head.about.shot_names, head.about.classes, head.shots.y
    for one in assessment.suspects[:MOST_LISTED]:
        typer.echo(
            f"look again: {names[one.row]} may be {classes[one.predicted]} ({100 * one.probability:.0f} %), "
            f"not {classes[y[one.row]]}"
        )
    for first, second in fitted.twins[:MOST_LISTED]:
        where = "in two classes" if y[first] != y[second] else "twice"
        typer.echo(f"look again: the same picture {where}: {names[first]}, {names[second]}")
    single = [classes[c] for c, n in enumerate(head.shots.counts) if n == 1]
    if single:
        typer.echo(f"needs more pictures (one only, so not measured): {_some(single)}")
    weak = [
        classes[c]
        for c, own in enumerate(assessment.per_class)
        if own is not None and assessment.accuracy is not None and own.high < assessment.accuracy.value
    ]
    if weak:
        typer.echo(f"needs more pictures (recognised less often than the rest): {_some(weak)}")
    if assessment.next_shot is not None:
        typer.echo(f"one more picture per class: about {100 * assessment.next_shot:+.1f} points by the learning curve.")


def _some(names) -> str:
    from kshot.pictures.photos import listed

    return listed(list(names))
