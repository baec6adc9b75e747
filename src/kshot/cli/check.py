"""`kshot check`: may these features, or these records, be trusted?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, existing_records

if TYPE_CHECKING:
    from kshot.data.gate import Finding


def check(
    dataset: Annotated[str | None, typer.Argument(help="One dataset only.")] = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    records: Annotated[
        Path | None, typer.Option("--records", help="Check this records folder instead of features.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="With --records: set aside what is broken, bring study.json back.")
    ] = False,
) -> None:
    """Features: hashes, shapes, norms, labels, disjoint splits, zero-shot accuracy against its published band.

    Without a name everything in the folder is checked; bundled features by name, or where the folder is empty.
    With --records a folder of records: hashes, header, the arithmetic of every row, duplicates.
    """
    if records is not None:
        _check_records(existing_records(records), repair)
        return
    from kshot.data.catalog import not_encoded
    from kshot.data.gate import check_stratum
    from kshot.data.store import Store
    from kshot.errors import FeatureError, unknown

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
            _print(f"{stratum[0]}/{stratum[1]}", finding)
    if bad:
        typer.echo(f"kshot: {bad} check(s) failed; do not trust these features.", err=True)
        raise typer.Exit(2)
    typer.echo(f"{len(chosen)} stratum(s) pass every check")


def _check_records(folder: Path, repair: bool) -> None:
    from kshot.bench.check import check_records, repair_records

    for sentence in repair_records(folder) if repair else ():
        typer.echo(sentence)
    findings = list(check_records(folder))
    for finding in findings:
        _print(str(folder), finding)
    if not all(finding.passed for finding in findings):
        typer.echo(f"kshot: these records are damaged. Type `kshot check --records {folder} --repair`.", err=True)
        raise typer.Exit(2)


def _print(where: str, finding: "Finding") -> None:
    typer.echo(f"{'ok  ' if finding.passed else 'FAIL'} {where}: {finding.what}")
