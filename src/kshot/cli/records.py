"""`kshot records`: import, check, join, compare, probe and pack records folders."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from typer import Argument, Option

from kshot.bench.check import check_records, repair_records
from kshot.bench.compact import compact as join
from kshot.bench.diff import Difference, Move, compare
from kshot.bench.imported import import_records
from kshot.bench.records import Records
from kshot.bench.release import open_release, write_release
from kshot.bench.run import StudyShard
from kshot.cli import shared
from kshot.cli.features import print_finding
from kshot.cli.shared import CORES, FEATURES, RecordsArgument, console, existing_records
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import InputError
from kshot.progress import Progress
from kshot.report.context import read_probes
from kshot.report.table import Number, Table, count, signed
from kshot.report.tables.stratum_probes import stratum_tables
from kshot.results import load_records
from kshot.runs import measure, parse_stratum
from kshot.theory.probes.measure import measure_stratum
from kshot.theory.probes.stored import probe_rows

app = shared.command_group(add_completion=False, help="Import, check, join, compare, probe and pack records.")


class ProbeGroup(StrEnum):
    """Probes that are measured together."""

    geometry = "geometry"
    draws = "draws"
    per_class = "per_class"


@app.command()
def check(
    records: RecordsArgument,
    repair: Annotated[bool, Option("--repair", help="Set aside broken files and restore study.json.")] = False,
) -> None:
    """Check hashes, header, the arithmetic of every row, and duplicates."""
    folder = existing_records(records)
    for sentence in repair_records(folder) if repair else ():
        typer.echo(sentence)
    findings = list(check_records(folder))
    for finding in findings:
        print_finding(str(folder), finding)
    if not all(finding.passed for finding in findings):
        typer.echo(f"kshot: these records are damaged. Type `kshot records check {folder} --repair`.", err=True)
        raise typer.Exit(2)


@app.command()
def compact(records: RecordsArgument) -> None:
    """Join the small files of a records folder into one, with all their rows."""
    folder = existing_records(records)
    console().print(f"joined {join(Records(folder))} files in {folder}", markup=False)


@app.command("import")
def import_(
    file: Annotated[Path, Argument(help="Other people's results: CSV, JSON lines or parquet, a row for each record.")],
    mapping: Annotated[Path, Argument(help="TOML file that names the columns; see docs/other-peoples-runs.md.")],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Folder to create; records/NAME of the mapping unless given.")
    ] = None,
) -> None:
    """Write other people's results as a records folder, marked as imported."""
    found = import_records(file, mapping, output)
    for note in found.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"imported {found.records:,} records of {found.cells:,} cells into {found.folder}")
    typer.echo(f"next: kshot report {found.folder}")


@app.command()
def diff(first: RecordsArgument, second: RecordsArgument) -> None:
    """Compare two records folders: cell by cell if they have the same draws, else by the noise of their draws.

    Exit code 1 if a cell with the same draws has another record, or a difference is more than noise.
    """
    difference = compare(existing_records(first), existing_records(second))
    print_difference(difference, "second minus first")
    if difference.differing or (difference.paired and not difference.same):
        raise typer.Exit(1)


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
    records: Annotated[Path | None, Argument(help="Records folder, or the study that filled it.")] = None,
    on: Annotated[
        str | None, Option(help="DATASET/BACKBONE/TIER: print the probes of this stratum, store nothing.")
    ] = None,
    only: Annotated[list[ProbeGroup] | None, Option(help="Only these probes. Repeatable; all unless given.")] = None,
    tier: Annotated[list[str] | None, Option(help="Prompt tiers. Repeatable; dataset unless given.")] = None,
    backbone: shared.OnlyBackbones = None,
    shots: Annotated[list[int] | None, Option(min=1, help="With --on. Repeatable; 1, 2, 4, 8, 16 unless given")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Only the first draws; all unless given, five with --on.")] = None,
    engine: shared.EngineOption = "local",
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
    shard: shared.ShardOption = "0/1",
) -> None:
    """Measure what the theory predicts on every stratum and draw of a study, or on one stratum.

    For a study, measure what is missing and store it beside the records. With --on, print the tables of one stratum
    (offset, headroom, precision, …); with RECORDS too, also the probes pooled over all strata.
    """
    folder = None if records is None else existing_records(records)
    if on is not None:
        _print_stratum(parse_stratum(on), shots or [1, 2, 4, 8, 16], seeds or 5, folder, features)
        return
    if folder is None:
        raise InputError("give a records folder, or one stratum with --on DATASET/BACKBONE/TIER.")
    stored = measure(
        folder,
        features=features,
        groups=[str(group) for group in only or ProbeGroup],
        tiers=tier or ["dataset"],
        backbones=backbone or (),
        draws=seeds,
        workers=workers,
        engine=engine,
        shard=StudyShard.parse(shard),
    )
    console().print(f"probes in {stored.folder}; next: kshot report {folder}", markup=False)


def _print_stratum(
    where: tuple[str, str, str], shots: list[int], seeds: int, folder: Path | None, features: Path
) -> None:
    dataset, backbone, tier = where
    out, store = console(), Store(features)
    stratum = load_stratum(store, dataset, backbone)
    text = load_prior(store, dataset, backbone, tier).text
    with Progress("", pause=0.0) as progress:
        measured = measure_stratum(stratum, text, tier, shots, range(seeds), lambda what: progress.advance(1, what))
    if stratum.simulated:
        out.print("These features are simulated; their numbers do not hold for pictures.")
    for table in stratum_tables(read_probes(pa.Table.from_pylist(probe_rows(measured)))):
        out.print(table)
    if folder is not None:
        out.print(load_records(folder, features=features).table("probes"))


@app.command()
def pack(
    folders: Annotated[list[Path], Argument(help="Folders of features, and of records with probes and reports.")],
    output: Annotated[Path, Option("--output", "-o", help="The archive to write.")] = Path("release.tar"),
) -> None:
    """Pack features, records, probes and reports into one file, with a checksum of each."""
    typer.echo(f"packed {write_release(folders, output)} files into {output}")


@app.command()
def unpack(
    archive: Annotated[Path, Argument(help="A file that `kshot records pack` wrote.")],
    target: Annotated[Path, Argument(help="Folder to create.")],
) -> None:
    """Unpack a file of `kshot records pack`; nothing is kept unless every checksum is right."""
    typer.echo(f"unpacked {open_release(archive, target)} files into {target}")
