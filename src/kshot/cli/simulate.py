"""`kshot simulate`: write the generated world into the feature store."""

from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption


def simulate(
    paper: Annotated[
        bool, typer.Option("--paper", help="Small worlds under the names of the paper's datasets and encoders.")
    ] = False,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Write the simulated datasets (generated numbers, no pictures) as stored features."""
    if paper:
        from kshot.data.store import Store
        from kshot.paper.rehearsal import write_rehearsal

        typer.echo(f"wrote {write_rehearsal(Store(features))} simulated strata to {features}")
        return
    from kshot.data.simulated import WORLDS, write
    from kshot.data.store import Store

    for world in WORLDS.values():
        write(world, Store(features))
        typer.echo(f"{world.name}: {world.classes} classes, simulated")
    typer.echo(f"wrote {len(WORLDS)} simulated datasets to {features}")
