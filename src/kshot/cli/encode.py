"""`kshot encode` and `kshot import`: write features into the store."""

import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.bench.slurm import sbatch_file
from kshot.cli.shared import FEATURES, BackendOption, DeviceOption, FeaturesOption
from kshot.data.catalog import backbones
from kshot.data.store import Store
from kshot.data.views import RECIPES
from kshot.encode.blocks import Crew
from kshot.encode.caches.importing import read_cache, text_job, write_cache
from kshot.encode.caches.layouts import named_cache
from kshot.encode.encoders import load_encoder, local_weights, stored_name
from kshot.encode.encoding import encode_jobs
from kshot.encode.hub import DATASETS
from kshot.encode.plan import plan_lines
from kshot.encode.prompts import tier_prompts
from kshot.encode.protocol import several_devices
from kshot.encode.sources import find_origins
from kshot.encode.sources.source import leave_out
from kshot.encode.targets import Encoding
from kshot.errors import InputError, unknown
from kshot.files import real_path, safe_name
from kshot.methods.parameters import check_logit_scale
from kshot.methods.zero_shot import ZeroShot
from kshot.types import Views
from kshot.workers import Shard, Workers

ViewsOption = Annotated[int, Option(min=0, help="Augmented views of the pool; CLAP takes 20, GDA 10 of them.")]
ViewRecipeOption = Annotated[
    str, Option(help="Crops: tip (at least half of the picture; as GDA and LP++) or clap (at least 8 %).")
]


def encode(
    backbone: Annotated[
        list[str],
        Option(help="A name of `kshot ls backbones`, MODEL/WEIGHTS of open_clip, or hf:ORG/NAME. Repeatable."),
    ],
    source: Annotated[
        str,
        Argument(
            help="Folder of pictures, CSV file, CoOp split (split_zhou_*.json), dataset saved by the `datasets` "
            "library, or webdataset shards (folder, or address of a dataset on the hub). {wds} stands for "
            "clip-benchmark's name of each --dataset."
        ),
    ] = DATASETS,
    dataset: Annotated[list[str] | None, Option(help="Name to store; `paper`: the paper's ten. Repeatable.")] = None,
    tier: Annotated[list[str] | None, Option(help="Prompt tier to encode; none unless given. Repeatable.")] = None,
    sentences: Annotated[list[str] | None, Option(help="TIER=FILE.json, or TIER=FOLDER with a file a dataset.")] = None,
    weights: Annotated[list[str] | None, Option(help="Checkpoint or open_clip folder; or BACKBONE=PATH.")] = None,
    keep_shards: Annotated[Path | None, Option(help="Keep fetched shards in FOLDER/DATASET, to encode again.")] = None,
    views: ViewsOption = 0,
    view_recipe: ViewRecipeOption = "tip",
    without: Annotated[
        list[str] | None, Option("--without", help="Class to leave out: Caltech101 without background. Repeatable.")
    ] = None,
    features: FeaturesOption = FEATURES,
    batch: Annotated[int, Option(min=1, help="Pictures per step.")] = 32,
    threads: Annotated[int, Option(min=1, help="Threads that decode ahead.")] = 2,
    device: DeviceOption = "auto",
    workers: Annotated[int, Option(min=1, help="Processes that encode side by side.")] = 1,
    backend: BackendOption = "loky",
    shard: Annotated[str, Option(help="Part of the blocks as i/n: the i-th of n parts, from 0.")] = "0/1",
    sbatch: Annotated[int | None, Option(min=1, help="Print an sbatch file of so many array tasks.")] = None,
    plan: Annotated[bool, Option("--plan", help="Say what is missing and what it costs here; encode nothing.")] = False,
    limits: Annotated[list[str] | None, Argument(help="After --: options of sbatch, for --sbatch.")] = None,
) -> None:
    """Encode pictures and prompts into stored features; after an interruption the same command continues."""
    if sbatch is not None:
        typer.echo(sbatch_file("encode", words_without_sbatch(sys.argv[1:]), limits or [], sbatch, threads), nl=False)
        return
    if limits:
        raise InputError(f"'{limits[0]}' is too much; words after -- are options of sbatch and need --sbatch N.")
    devices = several_devices(device, workers)
    crew = Crew(Workers(workers, backend), Shard.parse(shard), devices)
    wanted = parse_views(views, view_recipe)
    files = dict(named_file(text) for text in sentences or [])
    names: list[str] = list(dict.fromkeys([*(tier or ()), *files]))
    checkpoints = local_weights(backbone, weights or [])
    origins = find_origins(source, dataset or [])
    sources = [(origin, leave_out(origin.open(keep_shards), without or ())) for origin in origins]
    named = {name for _, opened in sources for name in opened.origin.partition(" without ")[2].split(", ")}
    if unnamed := [name for name in without or () if name not in named]:
        classes = [name for _, opened in sources for name in opened.classes]
        raise InputError(unknown("class", unnamed[0], classes, "Give a name of the source with --without."))
    # A wrong tier is reported before hours of encoding.
    prompts = {o.dataset: tier_prompts(o.dataset, opened, o.template, names, files) for o, opened in sources}
    encoders = {stored_name(b): load_encoder(b, checkpoints.get(b), devices[0]) for b in backbone}
    for origin, opened in sources:
        about = {"licence": origin.licence, "protocol": origin.protocol, "batch": batch, "threads": threads}
        jobs = [Encoding(origin.dataset, name, opened, encoder, **about) for name, encoder in encoders.items()]
        if plan:
            typer.echo("\n".join(plan_lines(jobs, Store(features), wanted, workers)))
        else:
            encode_jobs(jobs, Store(features), wanted, prompts[origin.dataset], crew)
    if not plan:
        typer.echo(f"next: kshot features check --features {features}")


def words_without_sbatch(words: Sequence[str]) -> list[str]:
    """The words of a command before --, without --sbatch N."""
    kept = list(takewhile(lambda word: word != "--", words))
    for place, word in enumerate(kept):
        if word.partition("=")[0] == "--sbatch":
            return kept[:place] + kept[place + (1 if "=" in word else 2) :]
    return kept


def parse_views(count: int, recipe: str) -> dict[Views, None]:
    """Read --views and --view-recipe; the views are of the whole pool."""
    if recipe not in RECIPES:
        raise InputError(unknown("view recipe", recipe, RECIPES, "Give one of them."))
    return {Views(recipe, count): None} if count else {}


def named_file(text: str) -> tuple[str, Path]:
    """Read --sentences."""
    name, equals, path = text.partition("=")
    if not (equals and name and path):
        raise InputError(f"--sentences {text}: write TIER=FILE.json.")
    if not Path(path).exists():
        raise InputError(f"--sentences {text}: there is nothing at {path}.")
    return name, Path(path)


PART = "FEATURES,LABELS or FEATURES,LABELS,IDS; each is FILE, FILE:KEY, or a KEY of the source."


def import_(
    source: Annotated[
        Path,
        Argument(help="Folder of Tip-Adapter, GDA, CLAP or clip_benchmark, or npz, npy, pt, safetensors, parquet."),
    ],
    backbone: Annotated[str, Option(help="Which encoder made the features; `kshot ls backbones`.")],
    dataset: Annotated[str | None, Option(help="Name to store under; the source's own unless given.")] = None,
    pool: Annotated[str | None, Option(help=f"Shots are drawn from here: {PART}")] = None,
    test: Annotated[str | None, Option(help=f"Test rows: {PART}")] = None,
    val: Annotated[str | None, Option(help=f"Official validation rows: {PART}")] = None,
    views: Annotated[str | None, Option(help=f"Augmented views of the pool, view after view: {PART}")] = None,
    view_recipe: Annotated[
        str | None, Option(help="How they were made: tip or clap; the layout's unless given.")
    ] = None,
    view_count: Annotated[int | None, Option(min=1, help="How many of each picture; found out unless given.")] = None,
    whole: Annotated[str | None, Option("--all", help=f"Instead of pool and test, split 68/32: {PART}")] = None,
    text: Annotated[list[str] | None, Option(help="TIER=FILE, TIER=FILE:KEY or TIER=KEY. Repeatable.")] = None,
    classes: Annotated[
        str | None, Option(help="Class names by label: txt, JSON list, CoOp split, or FILE:KEY.")
    ] = None,
    tier: Annotated[list[str] | None, Option(help="A tier that the backbone encodes now. Repeatable.")] = None,
    template: Annotated[str | None, Option(help="Template of tier dataset, with {} for the class.")] = None,
    weights: Annotated[Path | None, Option(help="Local checkpoint for --tier.")] = None,
    logit_scale: Annotated[float | None, Option(min=0.0, help="The encoder's; the catalog's unless given.")] = None,
    origin: Annotated[str, Option(help="Where the files come from, for the manifest.")] = "",
    licence: Annotated[str, Option(help="Their licence, for the manifest.")] = "",
    features: FeaturesOption = FEATURES,
) -> None:
    """Check features that other programs computed and store them as a dataset; nothing in the files is run."""
    if view_recipe is not None:
        parse_views(0, view_recipe)
    given = {"pool": pool, "test": test, "val": val, "views": views, "all": whole}
    cache = named_cache(source, {k: v for k, v in given.items() if v is not None}, text or [], classes)
    name = safe_name("dataset", dataset or real_path(source).stem)
    stored, entry = safe_name("backbone", stored_name(backbone)), backbones().get(backbone)
    read = read_cache(cache, view_recipe or "", view_count)
    if entry is not None and entry.dim != read.dim:
        raise InputError(f"{source} has {read.dim} dimensions, but {backbone} gives {entry.dim}.")
    scale = logit_scale if logit_scale is not None else entry.logit_scale if entry else None
    if logit_scale is not None:
        check_logit_scale(logit_scale, "--logit-scale")
    prompts = text_job(read, name, backbone, tier, template, weights) if tier else None
    about = {"logit_scale": scale, "source": origin or real_path(source).name, "licence": licence}
    manifests = write_cache(read, Store(features), name, stored, prompts, **about)
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
