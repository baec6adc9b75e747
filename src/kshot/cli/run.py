"""`kshot run` and `kshot retry`: compute what a study still lacks."""

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
    own_modules,
)

if TYPE_CHECKING:
    from kshot.bench.execution.run import StudyShard


def run(
    study: StudyArgument,
    method: MethodOption = None,
    engine: EngineOption = "local",
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    shard: Annotated[str, typer.Option(help="Only part i of n, as i/n counted from 0.")] = "0/1",
) -> None:
    """Compute the missing cells of a study; finished cells are never computed again."""
    from kshot.bench.execution.engines import choose_engine
    from kshot.runs import complete

    own_modules()
    part, chosen = parse_shard(shard), choose_engine(engine, workers)
    folder = complete(study, records, features, chosen, method or (), part)
    typer.echo(f"next: kshot report {folder}")


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

    own_modules()
    compute_again(
        study, records=records, features=features, workers=workers, engine=engine, method=method or ()
    )


def parse_shard(text: str) -> "StudyShard":
    from kshot.bench.execution.run import StudyShard
    from kshot.errors import KshotError

    index, slash, count = text.partition("/")
    if slash and index.isdigit() and count.isdigit() and int(index) < int(count):
        return StudyShard(int(index), int(count))
    raise KshotError(f"shard '{text}' is not of the form i/n with 0 ≤ i < n, for example 0/4.")
