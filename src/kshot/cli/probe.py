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
    only: Annotated[
        list[Group] | None, typer.Option(help="Only these probes. Repeatable; all unless given.")
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option(help="Prompt tiers. Repeatable; dataset unless given.")
    ] = None,
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
    from kshot.bench.execution.engines import choose_engine
    from kshot.bench.records.folder import Records
    from kshot.bench.study import Cell
    from kshot.bench.work import check_stored, find_work
    from kshot.diagnose.stored import ProbeFolder
    from kshot.diagnose.whole_study import GROUPS, probe_batches, probe_workload
    from kshot.features.store import Store
    from kshot.progress import Progress

    folder, part = existing_records(records), parse_shard(shard)
    owner, store, stored = Records(folder), Store(features), ProbeFolder(folder)
    check_stored(owner, store)
    work = find_work(owner.study(), store, owner)

    wanted_seeds = sorted({cell.seed for cell in work.cells})[:seeds]

    def asked_for(cell: Cell) -> bool:
        return (
            cell.tier in (tier or ["dataset"])
            and (not backbone or cell.backbone in backbone)
            and cell.seed in wanted_seeds
        )

    batches = probe_batches(work, stored, only or GROUPS, asked_for, part.index, part.count)
    todo, out = sum(len(batch.cells) for batch in batches), console()
    out.print(f"{work.study.name}: {len(batches)} batches of probes to measure", markup=False)
    if batches:
        with Progress("cells", todo) as progress:
            choose_engine(engine, workers)(
                probe_workload(work.study, features, stored, batches), progress.advance
            )
    out.print(f"probes in {stored.folder}", markup=False)
