"""`kshot show`: everything known about one name."""

import inspect
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption


def show(
    name: Annotated[str, typer.Argument(help="A dataset, backbone, tier or method.")],
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """A catalog entry or method in full, and what is stored of it."""
    from kshot.data import catalog
    from kshot.data.store import Store
    from kshot.errors import KshotError, unknown
    from kshot.methods import registry

    everything = list(Store(features).readable())
    stored = [m for m in everything if name in (m.dataset, m.backbone)]
    known = {**catalog.datasets(), **catalog.backbones(), **catalog.tiers()}
    facts: dict[str, Any] = {}
    if name in known:
        facts = asdict(known[name])
    elif name in registry.names():
        method = registry.create(name)
        facts = asdict(method.info) | {"sees": ", ".join(sorted(method.info.sees)), "parameters": repr(method)}
        typer.echo((inspect.getdoc(type(method)) or "") + "\n")
    elif not stored:
        names = [*known, *registry.names(), *{m.dataset for m in everything}]
        raise KshotError(unknown("name", name, names, "List them with `kshot ls`."))
    for key, value in facts.items():
        if value not in (None, "", ()):
            typer.echo(f"{key:14} {value}")
    for manifest in stored:
        typer.echo(
            f"stored         {manifest.dataset}/{manifest.backbone}/{manifest.part}: {manifest.rows} × "
            f"{manifest.dim} {manifest.dtype}, sha256 {manifest.sha256[:12]}…"
            + (", simulated" if manifest.simulated else "")
        )
