"""`kshot ls` and `kshot show`: what there is, and everything known about one name."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kshot.cli.shared import FEATURES, FeaturesOption
from kshot.errors import KshotError, unknown

if TYPE_CHECKING:
    from kshot.data.format import Manifest


class Kind(StrEnum):
    """Kinds of things to list."""

    datasets = "datasets"
    open = "open"
    backbones = "backbones"
    tiers = "tiers"
    methods = "methods"
    studies = "studies"
    features = "features"


def ls(
    what: Annotated[Kind | None, typer.Argument(help="One kind only; open: sets for `kshot features build`.")] = None,
    features: FeaturesOption = FEATURES,
) -> None:
    """List datasets, backbones, prompt tiers, methods, studies and stored features."""
    for kind, lines in _LISTS.items():
        if what in (None, kind):
            typer.secho(kind.value, bold=True)
            for line in lines(features):
                typer.echo(f"  {line}")


def _datasets(features: Path) -> list[str]:
    from kshot.data.catalog import datasets

    return [f"{e.name:14} {e.classes:5} classes  {e.split:9} {e.title}" for e in datasets().values()]


def _open(features: Path) -> list[str]:
    from kshot.data.catalog import datasets

    sets = [entry for entry in datasets().values() if entry.pictures_sha256]
    return [f"{e.name:14} {e.classes:5} classes  {e.title}\n{'':17}from {e.source}; {e.licence}" for e in sets]


def _backbones(features: Path) -> list[str]:
    from kshot.data.catalog import backbones

    return [f"{e.name:14} d={e.dim:<5} {'text' if e.text else 'no text':8} {e.title}" for e in backbones().values()]


def _tiers(features: Path) -> list[str]:
    from kshot.data.catalog import tiers

    return [f"{e.name:14} {e.title}" for e in tiers().values()]


def _methods(features: Path) -> list[str]:
    from kshot.methods import registry

    lines = []
    for name in registry.names():
        info = registry.create(name).info
        kind = "reference point, " if info.reference_point else "transductive, " if info.transductive else ""
        sees = ", ".join(sorted(info.sees))
        lines.append(f"{name:17} {info.title:26} from {info.min_shots} shot(s), {kind}sees {sees}")
    return lines


def _studies(features: Path) -> list[str]:
    """Name each study of the package with the first sentence of its file."""
    from kshot.bench.study import bundled_studies

    def first_sentence(path: Path) -> str:
        lines = path.read_text().partition("\nname")[0].splitlines()
        return " ".join(line.removeprefix("#").strip() for line in lines).split(". ")[0].removesuffix(".")

    return [f"{name:16} {first_sentence(path)}." for name, path in bundled_studies().items()]


def _features(features: Path) -> list[str]:
    from kshot.data.store import Store

    store = Store(features)
    own = _strata((manifest, " (simulated)" if manifest.simulated else "") for manifest in store.manifests())
    nothing = [f"nothing stored in {features}; `kshot features simulate` writes a generated world"]
    return (own or nothing) + _strata((manifest, " (bundled)") for manifest in store.bundled())


def _strata(manifests: "Iterable[tuple[Manifest, str]]") -> list[str]:
    """Return one line per stratum with the rows of its parts."""
    parts: dict[str, list[str]] = {}
    for manifest, label in manifests:
        stratum = f"{manifest.dataset} {manifest.backbone}{label}"
        parts.setdefault(stratum, []).append(f"{manifest.part} {manifest.rows}")
    return [f"{stratum}: {', '.join(stored)}" for stratum, stored in parts.items()]


_LISTS: dict[Kind, Callable[[Path], list[str]]] = {
    Kind.datasets: _datasets,
    Kind.open: _open,
    Kind.backbones: _backbones,
    Kind.tiers: _tiers,
    Kind.methods: _methods,
    Kind.studies: _studies,
    Kind.features: _features,
}


def show(
    name: Annotated[str, typer.Argument(help="A dataset, backbone, tier or method.")],
    features: FeaturesOption = FEATURES,
) -> None:
    """Show everything known about a dataset, backbone, tier or method, and what is stored of it."""
    from kshot.data import catalog
    from kshot.data.store import Store
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
    for m in stored:
        simulated = ", simulated" if m.simulated else ""
        size = f"{m.rows} × {m.dim} {m.dtype}, sha256 {m.sha256[:12]}…{simulated}"
        typer.echo(f"stored         {m.dataset}/{m.backbone}/{m.part}: {size}")
