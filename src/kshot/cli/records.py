"""`kshot records`: compare records, and probe strata."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from kshot.bench.diff import Difference, Move, compare
from kshot.bench.probes import ProbeSelection
from kshot.cli import shared
from kshot.cli.shared import CORES, FEATURES, RECORDS, console, records_and_study
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import InputError
from kshot.progress import Progress
from kshot.report.context import Probed
from kshot.report.table import Number, Table, count, signed
from kshot.report.tables.stratum_probes import stratum_tables
from kshot.results import load_records
from kshot.runs import measure, parse_stratum
from kshot.theory.probes.measure import measure_stratum
from kshot.types import BALANCED
from kshot.workers import Shard

if TYPE_CHECKING:
    import pyarrow as pa

app = shared.command_group(add_completion=False, help="Compare records, and probe strata.")
Side = Annotated[str, Argument(help="A folder of records, FOLDER:STUDY where several share it, or a study.")]


class ProbeGroup(StrEnum):
    """Probes that are measured together."""

    geometry = "geometry"
    draws = "draws"
    per_class = "per_class"


@app.command()
def diff(first: Side, second: Side) -> None:
    """Compare the records of two studies or folders: cell by cell if they have the same draws, else by the noise of
    their draws.

    Exit code 1 if a cell with the same draws has another record, or a difference is more than noise.
    """
    difference = compare(*(_table(side) for side in (first, second)))
    print_difference(difference, "second minus first")
    if difference.differing or (difference.paired and not difference.same):
        raise typer.Exit(1)


def _table(side: str) -> "pa.Table":
    folder, colon, study = side.rpartition(":")
    # The colon of a drive names no study.
    named = colon and not Path(side).is_dir()
    return load_records(
        *(records_and_study(study, Path(folder)) if named else records_and_study(side, RECORDS))
    ).records


def print_difference(found: Difference, direction: str) -> None:
    out = console()
    out.print(found.summary, markup=False)
    for name, (before, after) in found.circumstances.items():
        out.print(f"{name}: {', '.join(before)} → {', '.join(after)}", markup=False)
    if found.only_first or found.only_second:
        out.print(f"{found.only_first} records only in the first, {found.only_second} only in the second")
    how = "paired by draw" if found.paired else "other draws, so no record has a partner"
    caption = (
        f"Accuracy in percentage points, {direction}; {how}. Noise: standard error over other draws; z: change in such "
        "errors. Agrees: a change of one point would have been seen."
    )
    columns = ("records", "identical", "flipped test pictures", "mean change", "largest", "noise", "z", "verdict")
    for title, moves in (("method", found.moves), ("dataset/backbone", found.strata)):
        rows = tuple(_move_row(move) for move in moves)
        out.print(Table(f"Changes by {title}", (title, *columns), rows, caption if moves is found.strata else ""))


def _move_row(move: Move) -> tuple[str | Number, ...]:
    identical, flipped, largest = (
        float("nan") if value is None else value for value in (move.identical, move.flipped, move.largest_change)
    )
    return (
        move.of,
        count(move.records),
        Number(identical, ",.0f"),
        Number(flipped, ".3%"),
        signed(move.mean_change, 3),
        signed(largest),
        Number(move.judged.error, ".3f"),
        Number(move.judged.z, "+.1f"),
        move.judged.verdict,
    )


@app.command()
def probe(
    study: Annotated[str | None, Argument(help="A study file, or a name of `kshot ls studies`.")] = None,
    on: Annotated[
        str | None, Option(help="DATASET/BACKBONE/TIER: print the probes of this stratum, store nothing.")
    ] = None,
    only: Annotated[list[ProbeGroup] | None, Option(help="Only these probes. Repeatable; all unless given.")] = None,
    tier: Annotated[list[str] | None, Option(help="Prompt tiers. Repeatable; dataset unless given.")] = None,
    backbone: shared.OnlyBackbones = None,
    shots: Annotated[list[int] | None, Option(min=1, help="With --on. Repeatable; 1, 2, 4, 8, 16 unless given")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Only the first draws; all unless given, five with --on.")] = None,
    backend: shared.BackendOption = "loky",
    records: shared.RecordsOption = RECORDS,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
    shard: shared.ShardOption = "0/1",
) -> None:
    """Measure what the theory predicts on every stratum and draw of a study, or on one stratum.

    For a study, measure what is missing and store it beside the records. With --on, print the tables of one stratum
    (offset, headroom, precision, …).
    """
    if on is not None:
        _print_stratum(parse_stratum(on), shots or [1, 2, 4, 8, 16], seeds or 5, features)
        return
    if study is None:
        raise InputError("give a study, or one stratum with --on DATASET/BACKBONE/TIER.")
    groups = [str(group) for group in only or ProbeGroup]
    stored = measure(
        study,
        records=records,
        features=features,
        chosen=ProbeSelection(groups, tier or ["dataset"], backbone or (), seeds),
        workers=workers,
        backend=backend,
        shard=Shard.parse(shard),
    )
    console().print(f"probes in {stored.folder}; next: kshot report {study}", markup=False)


def _print_stratum(where: tuple[str, str, str], shots: list[int], seeds: int, features: Path) -> None:
    dataset, backbone, tier = where
    out, store = console(), Store(features)
    stratum = load_stratum(store, dataset, backbone)
    text = load_prior(store, dataset, backbone, tier).text
    with Progress("", pause=0.0) as progress:
        measured = measure_stratum(stratum, text, shots, range(seeds), lambda what: progress.advance(1, what))
    if stratum.simulated:
        out.print("These features are simulated; their numbers do not hold for pictures.")
    values: dict[str, dict] = {}
    for (k, seed), quantities in measured.items():
        for name, value in quantities.items():
            values.setdefault(name, {})[dataset, backbone, tier, k, seed, BALANCED] = value
    for table in stratum_tables(Probed(values)):
        out.print(table)
