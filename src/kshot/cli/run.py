"""`kshot run`: compute the missing cells of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli import shared
from kshot.cli.shared import CORES, FEATURES
from kshot.errors import InputError

if TYPE_CHECKING:
    from kshot.results import Results


def run(
    study: shared.StudyArgument,
    method: shared.MethodOption = None,
    engine: shared.EngineOption = "local",
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
    shard: shared.ShardOption = "0/1",
    on: Annotated[
        list[str] | None,
        typer.Option(help="DATASET/BACKBONE/TIER: the study's shots, seeds and methods on these features. Repeatable."),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Also compute the cells with a failed method again, after a repair.")
    ] = False,
    verified: Annotated[
        bool, typer.Option("--verify", help="Then run cells of your own methods again, without the test labels.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--report", help="Then print leaderboard and verdict and write the report.")
    ] = False,
) -> None:
    """Compute the missing cells of a study; finished cells are never computed again."""
    from kshot.bench.run import choose_engine, complete
    from kshot.bench.study import load_study
    from kshot.runs import forget_failures

    part, chosen = shared.parse_shard(shard), choose_engine(engine, workers)
    asked = load_study(study)
    if on:
        asked = asked.on_features([shared.parse_stratum(text) for text in on])
    if retry:
        if part.count > 1:
            raise InputError("--retry takes the whole study. Leave --shard out.")
        forget_failures(asked.with_methods(method or []), records, features)
    folder = complete(asked, records, features, chosen, method or (), part)
    if show:
        from kshot.results import load_records

        results = load_records(folder, features=features)
        shared.console().print(results.leaderboard())
        print_verdict(results)
        typer.echo(f"wrote {results.report().page}")
    else:
        typer.echo(f"next: kshot report {folder}")
    differing = verified and _verify(folder, features)
    _end_if_failed(folder)
    if differing:
        raise typer.Exit(1)


def print_verdict(results: "Results") -> None:
    out = shared.console()
    for sentence in results.verdict():
        out.print(f"• {sentence}", markup=False)
    out.print()


def _verify(folder: Path, features: Path) -> bool:
    """Run cells of foreign methods again without test labels; True if one differs."""
    from kshot.runs import verify_methods

    found = verify_methods(folder, features)
    for detection in found:
        typer.echo(str(detection))
    if not found:
        typer.echo("Nothing to verify: every method of this study is part of kshot.")
    return any(detection.differences for detection in found)


def _end_if_failed(folder: Path) -> None:
    """Print how often each method failed and exit with 1 if one did."""
    from kshot.bench.query import failed_records
    from kshot.bench.records import Records

    failed = failed_records(Records(folder))
    if failed:
        each = ", ".join(f"{count} of {name}" for name, count in failed.items())
        typer.echo(f"kshot: finished with failed records: {each}. Type `kshot status {folder}`.", err=True)
        raise typer.Exit(1)
