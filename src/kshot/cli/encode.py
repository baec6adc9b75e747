"""`kshot encode`: pictures and prompts into the feature store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption
from kshot.encode.hub import DATASETS

if TYPE_CHECKING:
    from kshot.types import Views

ViewsOption = Annotated[int, typer.Option(min=0, help="Augmented views of the pool; CLAP takes 20, GDA 10 of them.")]
ViewRecipeOption = Annotated[
    str, typer.Option(help="Whose crops: tip (at least half of the picture; GDA and LP++ too) or clap (at least 8 %).")
]


def encode(
    backbone: Annotated[
        list[str],
        typer.Option(
            help="A name of `kshot ls backbones`, or MODEL/WEIGHTS of open_clip. Repeatable: one pass serves all."
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            help="Folder of pictures, CSV file, CoOp split (split_zhou_*.json), dataset saved by the `datasets` "
            "library, or webdataset shards (folder, or address of a dataset on the hub). {wds} stands for "
            "clip-benchmark's name of each --dataset."
        ),
    ] = DATASETS,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Name to store under; `paper` means the paper's ten. Repeatable with {wds}."),
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option(help="Prompt tier to encode; none unless given. Repeatable.")
    ] = None,
    sentences: Annotated[
        list[str] | None,
        typer.Option(help="TIER=FILE.json, a list of sentences for each class: adds cupl or a tier of your own."),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            help="Local checkpoint, or folder with open_clip_config.json; BACKBONE=PATH where there are several."
        ),
    ] = None,
    keep_shards: Annotated[
        Path | None,
        typer.Option(help="Keep fetched shards in FOLDER/DATASET, a source of its own; dropped unless given."),
    ] = None,
    views: ViewsOption = 0,
    view_recipe: ViewRecipeOption = "tip",
    features: FeaturesOption = DEFAULT_FEATURES,
    batch: Annotated[int, typer.Option(min=1, help="Pictures per step.")] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Threads that decode ahead.")] = 2,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Encode a source; after an interruption the same command continues."""
    from kshot.data.store import Store
    from kshot.encode.encoders import load_encoder, local_weights, stored_name
    from kshot.encode.encoding import check_reference, encode_pictures
    from kshot.encode.prompts import encode_tiers, tier_prompts
    from kshot.encode.sources import find_origins
    from kshot.encode.targets import Encoding
    from kshot.progress import Progress

    wanted = asked_views(views, view_recipe)
    files = dict(_named_file(text) for text in sentences or [])
    names: list[str] = list(dict.fromkeys([*(tier or ()), *files]))
    checkpoints = local_weights(backbone, weights or [])
    sources = [(origin, origin.open(keep_shards)) for origin in find_origins(source, dataset or [])]
    # A wrong tier is told before hours of encoding.
    prompts = {o.dataset: tier_prompts(o.dataset, opened, o.template, names, files) for o, opened in sources}
    encoders = {stored_name(b): load_encoder(b, checkpoints.get(b), device) for b in backbone}
    store = Store(features)
    for origin, opened in sources:
        jobs = [
            Encoding(
                origin.dataset,
                name,
                opened,
                encoder,
                licence=origin.licence,
                protocol=origin.protocol,
                batch=batch,
                threads=threads,
            )
            for name, encoder in encoders.items()
        ]
        for job in jobs:
            check_reference(job, store)
        with Progress(f"pictures of {origin.dataset}") as progress:
            encode_pictures(jobs, store, progress.advance, wanted)
        for job in (job for job in jobs if job.encoder.text):
            encode_tiers(job, store, prompts[job.dataset])
    typer.echo(f"next: kshot check --features {features}")


def asked_views(count: int, recipe: str) -> "Views | None":
    """What --views and --view-recipe ask for."""
    from kshot.encode.augment import RECIPES
    from kshot.errors import InputError, unknown
    from kshot.types import Views

    if recipe not in RECIPES:
        raise InputError(unknown("view recipe", recipe, RECIPES, "Give one of them."))
    return Views(recipe, count) if count else None


def _named_file(text: str) -> tuple[str, Path]:
    from kshot.errors import InputError

    name, equals, path = text.partition("=")
    if not (equals and name and path):
        raise InputError(f"--sentences {text}: write TIER=FILE.json.")
    return name, Path(path)
