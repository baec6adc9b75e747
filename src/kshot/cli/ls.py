"""`kshot ls`: what there is."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption

if TYPE_CHECKING:
    from kshot.data.format import Manifest


class What(StrEnum):
    """Kinds of things to list."""

    datasets = "datasets"
    backbones = "backbones"
    tiers = "tiers"
    methods = "methods"
    features = "features"


def ls(
    what: Annotated[What | None, typer.Argument(help="One kind only.")] = None,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Known datasets, backbones, tiers and methods, and the features that are stored."""
    listing = {
        What.datasets: _datasets,
        What.backbones: _backbones,
        What.tiers: _tiers,
        What.methods: _methods,
        What.features: lambda: _features(features),
    }
    for kind, lines in listing.items():
        if what in (None, kind):
            typer.secho(kind.value, bold=True)
            for line in lines():
                typer.echo(f"  {line}")


def _datasets() -> list[str]:
    from kshot.data.catalog import datasets

    return [f"{e.name:14} {e.classes:5} classes  {e.split:9} {e.title}" for e in datasets().values()]


def _backbones() -> list[str]:
    from kshot.data.catalog import backbones

    return [f"{e.name:14} d={e.dim:<5} {'text' if e.text else 'no text':8} {e.title}" for e in backbones().values()]


def _tiers() -> list[str]:
    from kshot.data.catalog import tiers

    return [f"{e.name:14} {e.title}" for e in tiers().values()]


def _methods() -> list[str]:
    from kshot.methods import registry

    lines = []
    for name in registry.names():
        info = registry.create(name).info
        kind = "reference point, " if info.reference_point else "transductive, " if info.transductive else ""
        lines.append(
            f"{name:17} {info.title:26} from {info.min_shots} shot(s), {kind}sees {', '.join(sorted(info.sees))}"
        )
    return lines


def _features(root) -> list[str]:
    from kshot.data.store import Store

    store = Store(root)
    own = _strata((manifest, " (simulated)" if manifest.simulated else "") for manifest in store.manifests())
    nothing = [f"nothing stored in {root}; `kshot simulate` writes a generated world"]
    return (own or nothing) + _strata((manifest, " (bundled)") for manifest in store.bundled())


def _strata(manifests: "Iterable[tuple[Manifest, str]]") -> list[str]:
    """One line per stratum with the rows of its parts."""
    parts: dict[str, list[str]] = {}
    for manifest, label in manifests:
        parts.setdefault(f"{manifest.dataset} {manifest.backbone}{label}", []).append(
            f"{manifest.part} {manifest.rows}"
        )
    return [f"{stratum}: {', '.join(stored)}" for stratum, stored in parts.items()]
