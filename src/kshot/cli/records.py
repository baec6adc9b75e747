"""`kshot compact`, `kshot diff` and `kshot precision`: looking after records."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import (
    DEFAULT_FEATURES,
    DEFAULT_WORKERS,
    EngineOption,
    FeaturesOption,
    StudyArgument,
    WorkersOption,
    console,
    existing_records,
)

if TYPE_CHECKING:
    from kshot.bench.diff import Difference

RecordsArgument = Annotated[Path, typer.Argument(help="Records folder, or the study that filled it.")]


def compact(records: RecordsArgument) -> None:
    """Join the small files of a records folder into one; every row is kept."""
    from kshot.bench.compact import compact as join
    from kshot.bench.records import Records

    folder = existing_records(records)
    console().print(f"joined {join(Records(folder))} files in {folder}", markup=False)


def diff(first: RecordsArgument, second: RecordsArgument) -> None:
    """Two records folders: compare them cell by cell and say what moved; exit code 1 if anything did."""
    from kshot.bench.diff import compare

    difference = compare(existing_records(first), existing_records(second))
    show_difference(difference, "second minus first")
    if not difference.same:
        raise typer.Exit(1)


def precision(
    study: StudyArgument,
    dataset: Annotated[list[str] | None, typer.Option("--dataset", help="Only this dataset. Repeatable.")] = None,
    engine: EngineOption = "local",
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
) -> None:
    """Precision: run a study in float32 and in float64, and tabulate what moves."""
    from kshot.runs import compare_precisions

    moved = compare_precisions(study, dataset or (), features=features, workers=workers, engine=engine)
    show_difference(moved, "float64 minus float32")


def show_difference(found: "Difference", direction: str) -> None:
    from kshot.report.table import Number, Table, count, signed

    out = console()
    for name, (before, after) in found.circumstances.items():
        out.print(f"{name}: {', '.join(before)} → {', '.join(after)}", markup=False)
    if found.only_first or found.only_second:
        out.print(f"{found.only_first} records only in the first, {found.only_second} only in the second")
    rows = tuple(
        (
            move.method,
            count(move.records),
            count(move.identical),
            Number(move.flipped, ".3%"),
            signed(move.mean_change, 3),
            signed(move.largest_change),
        )
        for move in found.moves
    )
    columns = ("method", "records", "identical", "flipped test pictures", "mean change", "largest change")
    out.print(Table("What moved", columns, rows, f"Accuracy in percentage points, {direction}."))
    out.print("the same records" if found.same else "some records differ")
