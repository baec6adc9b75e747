"""`kshot check`: may these features be trusted?"""

from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption


def check(
    dataset: Annotated[str | None, typer.Argument(help="One dataset only.")] = None,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Features: hashes, shapes, norms, labels, disjoint splits, zero-shot accuracy against its published band.

    Without a name everything in the folder is checked; bundled features by name, or where the folder is empty.
    """
    from kshot.episodes.check import check_stratum
    from kshot.errors import FeatureError, unknown
    from kshot.features.catalog import not_encoded
    from kshot.features.store import Store

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
        for finding in check_stratum(store, *stratum):
            bad += not finding.passed
            mark = "ok  " if finding.passed else "FAIL"
            typer.echo(f"{mark} {stratum[0]}/{stratum[1]}: {finding.what}")
    if bad:
        typer.echo(f"kshot: {bad} check(s) failed; do not trust these features.", err=True)
        raise typer.Exit(2)
    typer.echo(f"{len(chosen)} stratum(s) pass every check")
