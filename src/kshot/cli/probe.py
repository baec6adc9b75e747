"""`kshot probe`: measure what the theory predicts on every stratum and draw of a study."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.run import parse_shard
from kshot.cli.shared import (
    DEFAULT_FEATURES,
    DEFAULT_WORKERS,
    EngineOption,
    FeaturesOption,
    WorkersOption,
    console,
    existing_records,
)


class Group(StrEnum):
    """Probes that are measured together."""

    geometry = "geometry"
    draws = "draws"
    per_class = "per_class"


def probe(
    records: Annotated[Path, typer.Argument(help="Records folder, or the study file that filled it.")],
    only: Annotated[list[Group] | None, typer.Option(help="Only these probes. Repeatable; all unless given.")] = None,
    tier: Annotated[list[str] | None, typer.Option(help="Prompt tiers. Repeatable; dataset unless given.")] = None,
    backbone: Annotated[
        list[str] | None, typer.Option(help="Only these backbones. Repeatable; all unless given.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Only the first draws of each shot count; all unless given.")
    ] = None,
    engine: EngineOption = "local",
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    shard: Annotated[str, typer.Option(help="Only part i of n, as i/n counted from 0.")] = "0/1",
) -> None:
    """What the theory predicts, on every stratum and draw: measure what is not stored yet beside the records."""
    from kshot.runs import measure

    folder, wanted = existing_records(records), only or list(Group)
    stored = measure(
        folder,
        features=features,
        groups=[str(group) for group in wanted],
        tiers=tier or ["dataset"],
        backbones=backbone or (),
        draws=seeds,
        workers=workers,
        engine=engine,
        shard=parse_shard(shard),
    )
    console().print(f"probes in {stored.folder}; next: kshot report {folder}", markup=False)
