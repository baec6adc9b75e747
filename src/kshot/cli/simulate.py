"""`kshot simulate`: write the generated world into the feature store."""

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption


def simulate(features: FeaturesOption = DEFAULT_FEATURES) -> None:
    """Write the simulated datasets (generated numbers, no pictures) as stored features."""
    from kshot.datasets.simulated import WORLDS, write
    from kshot.features.store import Store

    for world in WORLDS.values():
        write(world, Store(features))
        typer.echo(f"{world.name}: {world.classes} classes, simulated")
    typer.echo(f"wrote {len(WORLDS)} simulated datasets to {features}")
