"""`kshot ls`: what there is, and everything known about one name."""

import inspect
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument

from kshot.bench.study import bundled_studies
from kshot.cli.shared import FEATURES, FeaturesOption
from kshot.data import catalog
from kshot.data.store import Store
from kshot.errors import SHOW_CONTROLS, KshotError, unknown
from kshot.methods import registry
from kshot.types import MethodInfo

KINDS = ("datasets", "open", "backbones", "tiers", "methods", "studies", "features")


def ls(
    what: Annotated[
        str | None, Argument(help=f"One kind ({', '.join(KINDS)}), a dataset, backbone, tier, method or head file.")
    ] = None,
    features: FeaturesOption = FEATURES,
) -> None:
    """List datasets, backbones, tiers, methods, studies and stored features, or show all about one name or head."""
    if what and what.endswith(".safetensors"):
        _show_head(Path(what))
        return
    if what and what not in KINDS:
        _show(what, features)
        return
    for kind in [what] if what else KINDS:
        typer.secho(kind, bold=True)
        for line in _lines(kind, features):
            typer.echo(f"  {line}")


def _lines(kind: str, features: Path) -> list[str]:
    datasets = catalog.datasets().values()
    match kind:
        case "datasets":
            return [f"{e.name:14} {e.classes:5} classes  {e.split:9} {e.title}" for e in datasets]
        case "open":
            sets = [e for e in datasets if e.pictures_sha256]
            return [f"{e.name:14} {e.classes:5} classes  {e.title}\n{'':17}from {e.source}; {e.licence}" for e in sets]
        case "backbones":
            known = catalog.backbones().values()
            return [f"{e.name:14} d={e.dim:<5} {'text' if e.text else 'no text':8} {e.title}" for e in known]
        case "tiers":
            return [f"{e.name:14} {e.title}" for e in catalog.tiers().values()]
        case "methods":
            return [_method(name, registry.create(name).info) for name in registry.names()]
        case "studies":
            return [f"{name:16} {_first_sentence(path)}." for name, path in bundled_studies().items()]
        case _:
            return _stored(features)


def _method(name: str, info: MethodInfo) -> str:
    kind = "reference point, " if info.reference_point else "transductive, " if info.transductive else ""
    sees = ", ".join(sorted(info.sees))
    return f"{name:17} {info.title:26} from {info.min_shots} shot(s), {kind}sees {sees}"


def _first_sentence(study: Path) -> str:
    """Return the first sentence of the comment on top of a study file, up to a bracket or semicolon."""
    comment = study.read_text(encoding="utf-8").partition("\nname")[0].replace("\n#", "").removeprefix("# ")
    return re.split(r" \(|; |\. |\.$", comment)[0]


def _stored(features: Path) -> list[str]:
    """Return one line per stratum with the rows of its parts."""
    store = Store(features)
    own = [(m, " (simulated)" if m.simulated else "") for m in store.manifests()]
    parts: dict[str, list[str]] = {}
    for manifest, label in own + [(m, " (bundled)") for m in store.bundled()]:
        stratum = f"{manifest.dataset} {manifest.backbone}{label}"
        parts.setdefault(stratum, []).append(f"{manifest.part} {manifest.rows}")
    nothing = f"nothing stored in {features}; `kshot features simulate` writes a generated world"
    return ([] if own else [nothing]) + [f"{stratum}: {', '.join(rows)}" for stratum, rows in parts.items()]


def _show_head(path: Path) -> None:
    """Print what a head of pictures knows, and from what."""
    from kshot.pictures.head import PictureHead

    head = PictureHead.load(path)
    about, shots = head.about, head.shots
    counts = ", ".join(f"{name} ({count})" for name, count in zip(about.classes, shots.counts.tolist(), strict=True))
    accuracy = "not measured: one picture per class"
    if about.accuracy is not None:
        share, low, high = (100 * value for value in about.accuracy)
        accuracy = f"about {share:.1f} % of new pictures right [{low:.1f}, {high:.1f}]"
    facts = {
        "classes": f"{len(about.classes)}: {counts}",
        "accuracy": accuracy,
        "method": f"{head.head.info.title}, {about.reason}",
        "prompt": about.prompt,
        "encoder": f"{about.backbone} ({about.encoder.get('name')})",
        "date": f"{datetime.fromtimestamp(path.stat().st_mtime):%Y-%m-%d %H:%M}, kshot {about.kshot}",
    }
    for key, value in facts.items():
        typer.echo(f"{key:14} {value}".translate(SHOW_CONTROLS))


def _show(name: str, features: Path) -> None:
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
        names = [*KINDS, *known, *registry.names(), *{m.dataset for m in everything}]
        raise KshotError(unknown("name", name, names, "List them with `kshot ls`."))
    for key, value in facts.items():
        if value not in (None, "", ()):
            typer.echo(f"{key:14} {value}")
    for m in stored:
        simulated = ", simulated" if m.simulated else ""
        size = f"{m.rows} × {m.dim} {m.dtype}, sha256 {m.sha256[:12]}…{simulated}"
        typer.echo(f"stored         {m.dataset}/{m.backbone}/{m.part}: {size}")
