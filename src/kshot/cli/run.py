"""`kshot run` and `kshot retry`: compute what a study still lacks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import (
    DEFAULT_FEATURES,
    DEFAULT_WORKERS,
    EngineOption,
    FeaturesOption,
    MethodOption,
    RecordsOption,
    StudyArgument,
    WorkersOption,
    console,
)

if TYPE_CHECKING:
    from kshot.bench.run import StudyShard


def run(
    study: StudyArgument,
    method: MethodOption = None,
    engine: EngineOption = "local",
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    shard: Annotated[str, typer.Option(help="Only part i of n, as i/n counted from 0.")] = "0/1",
    on: Annotated[
        list[str] | None,
        typer.Option(help="DATASET/BACKBONE/TIER: the study's shots, seeds and methods on these features. Repeatable."),
    ] = None,
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

    part, chosen = parse_shard(shard), choose_engine(engine, workers)
    asked = load_study(study).on_features([parse_stratum(text) for text in on]) if on else study
    folder = complete(asked, records, features, chosen, method or (), part)
    if show:
        from kshot.cli.report import print_verdict
        from kshot.results import load_records

        results, out = load_records(folder, features=features), console()
        out.print(results.leaderboard())
        print_verdict(results, out)
        typer.echo(f"wrote {results.report().page}")
    else:
        typer.echo(f"next: kshot report {folder}")
    differing = _verified(folder, features) if verified else False
    _tell_failures(folder)
    if differing:
        raise typer.Exit(1)


def _verified(folder: Path, features: Path) -> bool:
    from kshot.runs import verify_methods

    found = verify_methods(folder, features)
    for detection in found:
        typer.echo(str(detection))
    if not found:
        typer.echo("Nothing to verify: every method of this study is part of kshot.")
    return any(detection.differences for detection in found)


def retry(
    study: StudyArgument,
    method: MethodOption = None,
    engine: EngineOption = "local",
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
) -> None:
    """Compute the cells with a failed method again, after its cause was repaired."""
    from kshot.runs import retry as compute_again

    found = compute_again(
        study, records=records, features=features, workers=workers, engine=engine, method=method or ()
    )
    _tell_failures(found.folder)


def _tell_failures(folder: Path) -> None:
    """The last line and the exit code of a run that has failed methods say so."""
    from kshot.bench.records import Records
    from kshot.bench.status import failed_records

    failed = failed_records(Records(folder))
    if failed:
        each = ", ".join(f"{count} of {name}" for name, count in failed.items())
        typer.echo(f"kshot: finished with failed records: {each}. `kshot status {folder}` tells why.", err=True)
        raise typer.Exit(1)


def parse_shard(text: str) -> "StudyShard":
    from kshot.bench.run import StudyShard
    from kshot.errors import KshotError

    index, slash, count = text.partition("/")
    if slash and index.isdecimal() and count.isdecimal() and int(index) < int(count):
        return StudyShard(int(index), int(count))
    raise KshotError(f"shard '{text}' is not of the form i/n with 0 ≤ i < n, for example 0/4.")


def parse_stratum(text: str) -> tuple[str, str, str]:
    from kshot.errors import KshotError
    from kshot.files import safe_name

    parts = text.split("/")
    if len(parts) != 3:
        raise KshotError(f"--on {text}: write DATASET/BACKBONE/TIER; `kshot ls features` lists them.")
    dataset, backbone, tier = (
        safe_name(kind, part) for kind, part in zip(("dataset", "backbone", "tier"), parts, strict=True)
    )
    return dataset, backbone, tier
