"""`kshot import`: features that are already on disk become a dataset of the store."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption

PART = "FEATURES,LABELS or FEATURES,LABELS,IDS; each is FILE, FILE:KEY, or a KEY of the source."


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder that Tip-Adapter or clip_benchmark left, or a file: npz, npy, pt, safetensors, parquet."
        ),
    ],
    backbone: Annotated[str, typer.Option(help="Which encoder made the features; `kshot ls backbones`.")],
    dataset: Annotated[str | None, typer.Option(help="Name to store under; the source's own unless given.")] = None,
    pool: Annotated[str | None, typer.Option(help=f"Shots are drawn from here: {PART}")] = None,
    test: Annotated[str | None, typer.Option(help=f"Test rows: {PART}")] = None,
    val: Annotated[str | None, typer.Option(help=f"Official validation rows: {PART}")] = None,
    whole: Annotated[str | None, typer.Option("--all", help=f"Instead of pool and test, split 68/32: {PART}")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="TIER=FILE, TIER=FILE:KEY or TIER=KEY. Repeatable: one tier each.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Class names in the order of the labels: txt, JSON list, CoOp split, or FILE:KEY."),
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option(help="A tier whose text the backbone itself encodes now. Repeatable.")
    ] = None,
    template: Annotated[str | None, typer.Option(help="Template of tier dataset, with {} for the class.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Local checkpoint for --tier.")] = None,
    logit_scale: Annotated[
        float | None, typer.Option(min=0.0, help="The encoder's; known for the backbones of the catalog.")
    ] = None,
    origin: Annotated[str, typer.Option(help="Where the files come from, for the manifest.")] = "",
    licence: Annotated[str, typer.Option(help="Their licence, for the manifest.")] = "",
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Check features from elsewhere and store them as a dataset; nothing in the files is run."""
    from kshot.data.catalog import backbones
    from kshot.data.store import Store
    from kshot.encode.caches.importing import cache_provenance, read_cache, text_writer, write_cache
    from kshot.encode.caches.layouts import named_cache
    from kshot.encode.encoders import stored_name
    from kshot.errors import InputError
    from kshot.files import real_path, safe_name
    from kshot.methods.zero_shot import ZeroShot

    given = {"pool": pool, "test": test, "val": val, "all": whole}
    cache = named_cache(source, {k: v for k, v in given.items() if v is not None}, text or [], classes)
    name = safe_name("dataset", dataset or real_path(source).stem)
    stored, entry = safe_name("backbone", stored_name(backbone)), backbones().get(backbone)
    read = read_cache(cache)
    if entry is not None and entry.dim != read.dim:
        raise InputError(f"{source} has {read.dim} dimensions, but {backbone} gives {entry.dim}.")
    scale = logit_scale if logit_scale is not None else entry.logit_scale if entry else None
    write_text = text_writer(read, name, backbone, tier or [], template, weights)
    about = {"logit_scale": scale, "source": origin or real_path(source).name, "licence": licence}
    manifests = write_cache(
        read, Store(features), name, stored, write_text, **about, provenance=cache_provenance(cache, read.notes)
    )
    for manifest in manifests:
        typer.echo(f"{name}/{stored}/{manifest.part}: {manifest.rows} × {manifest.dim}, {manifest.dtype}")
    for note in read.notes:
        typer.echo(f"note: {note}")
    tiers = [m.part.removeprefix("text-") for m in manifests if m.part.startswith("text-")]
    for kept in tiers:
        prototypes = Store(features).text(name, stored, kept).prototypes
        accuracy = 100 * ZeroShot().fit(text=prototypes).score(*read.test)
        typer.echo(f"zero-shot with tier {kept}: {accuracy:.1f} % ({100 / len(read.classes):.1f} % by chance)")
    of = f"{name}/{stored}/{tiers[0] if tiers else 'none'}"
    typer.echo(f"next: kshot run embedded --on {of} --features {features} --report")
