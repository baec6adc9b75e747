"""`kshot features`: check and simulate stored features."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.cli.shared import FEATURES, FeaturesOption, command_group
from kshot.data.catalog import not_encoded
from kshot.data.gate import GateCheck, check_stratum
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from kshot.errors import FeatureError, unknown
from kshot.paper.rehearsal import write_rehearsal
from kshot.pictures.photos import copy_sample

app = command_group(add_completion=False, help="Check and simulate stored features.")


@app.command()
def check(
    dataset: Annotated[str | None, Argument(help="One dataset only.")] = None, features: FeaturesOption = FEATURES
) -> None:
    """Check hashes, shapes, norms, labels, disjoint splits, and zero-shot accuracy against its published band.

    Without a name everything in the folder is checked; bundled features by name, or where the folder is empty.
    """
    store = Store(features)
    own = sorted({(m.dataset, m.backbone) for m in store.manifests()})
    strata = sorted({(m.dataset, m.backbone) for m in store.readable()})
    chosen = [s for s in strata if s[0] == dataset] if dataset is not None else own or strata
    if not chosen:
        names = {name for name, _ in strata}
        raise FeatureError(
            not_encoded([dataset or ""], [], store.root)
            or unknown("dataset", dataset or "any", names, f"See `kshot ls features`; looked in {features}.")
        )
    bad = 0
    for stratum in chosen:
        for check in check_stratum(store, *stratum):
            bad += not check.passed
            print_check("/".join(stratum), check)
    if bad:
        typer.echo(f"kshot: {bad} check(s) failed; do not use these features.", err=True)
        raise typer.Exit(2)
    typer.echo(f"{len(chosen)} stratum(s) pass every check")


def print_check(where: str, check: GateCheck) -> None:
    typer.echo(f"{'ok  ' if check.passed else 'FAIL'} {where}: {check.what}")


@app.command()
def simulate(
    paper: Annotated[bool, Option("--paper", help="Small worlds with the names of the paper's sets.")] = False,
    features: FeaturesOption = FEATURES,
) -> None:
    """Write simulated datasets (generated numbers, no pictures) as stored features."""
    if paper:
        typer.echo(f"wrote {write_rehearsal(Store(features))} simulated strata to {features}")
        return
    for world in WORLDS.values():
        write(world, Store(features))
        typer.echo(f"{world.name}: {world.classes} classes, simulated")
    typer.echo(f"wrote {len(WORLDS)} simulated datasets to {features}")


@app.command()
def sample(target: Annotated[Path, Argument(help="Folder to create.")]) -> None:
    """Copy sixty public-domain drawings to try `kshot fit` on: TARGET/photos/CLASS and TARGET/new."""
    count = copy_sample(target)
    typer.echo(f"{count} drawings of OpenClipart (public domain) in {target}; next: kshot fit {target}/photos")
