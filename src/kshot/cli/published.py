"""`kshot published`: what the paper printed, beside what these records say."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import console, existing_records

if TYPE_CHECKING:
    import pyarrow as pa

    from kshot.report.published.compare import Beside


class ShownVerdict(StrEnum):
    """Which lines to print."""

    agrees = "agrees"
    differs = "differs"
    not_computed = "not-computed"
    not_reproducible = "not-reproducible"


def published(
    records: Annotated[
        Path,
        typer.Argument(help="A records folder (arms beside it are read too), or a folder of such folders."),
    ],
    show: Annotated[
        list[ShownVerdict] | None, typer.Option(help="Print the lines with this verdict. Repeatable.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another registry than the paper's, in the columns of its claims.csv.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The CSV file; published.csv in RECORDS unless given."),
    ] = None,
) -> None:
    """Compare every number of the paper with the records: agrees, differs, not computed, not reproducible."""
    from kshot.files import write_text
    from kshot.report.published.claims import paper_claims, read_claims
    from kshot.report.published.compare import as_csv, verdict_sentences
    from kshot.report.published.show import arms_table, lines_table

    folder = existing_records(records)
    lines, simulated = compare_folders(folder, paper_claims() if against is None else read_claims(against))
    out = console()
    for verdict in show or []:
        out.print(
            lines_table(
                [x for x in lines if x.verdict.startswith(verdict.replace("-", " "))], simulated
            ).rich()
        )
    out.print(arms_table(lines, simulated).rich())
    for sentence in verdict_sentences(lines, simulated):
        out.print(sentence, markup=False)
    target = output or folder / "published.csv"
    write_text(target, as_csv(lines))
    out.print(f"wrote {target}", markup=False)


def compare_folders(folder: Path, claims: "Sequence") -> "tuple[list[Beside], bool]":
    """All lines, and whether the features behind them are simulated."""
    from kshot.bench.records.query import load_table
    from kshot.diagnose.stored import ProbeFolder
    from kshot.report.published.arms import MATRIX, gather
    from kshot.report.published.compare import compare_claims
    from kshot.report.published.rules import paper_rules

    folders = arm_folders(folder)
    probes = [ProbeFolder(found).load() for found in folders]
    arms = gather([load_table(found) for found in folders], [*probes, _facts(folders)])
    return compare_claims(claims, paper_rules(), arms), arms.sides[MATRIX].panel.simulated


def arm_folders(folder: Path) -> list[Path]:
    """The folder and the arms beside it, or the records folders in it; the paper's matrix first."""
    from kshot.bench.records.folder import Records
    from kshot.errors import StudyError
    from kshot.report.published.rules import paper_rules

    own = (folder / "study.json").is_file()
    around = sorted(path.parent for path in (folder.parent if own else folder).glob("*/study.json"))
    arms = {
        path: Records(path).study().name
        for path in around
        if path != folder and (Records(path).loose() or Records(path).joined())
    }
    wanted = [path for path, name in arms.items() if name in paper_rules().paper["studies"]]
    if not own and not wanted:
        raise StudyError(f"{folder} holds no records of the paper's studies. Run `kshot run paper` first.")
    return [*([folder] if own else []), *sorted(wanted, key=lambda path: (arms[path] != "paper", path))]


def _facts(folders: Sequence[Path]) -> "pa.Table":
    """What records do not hold: the cells dropped for a thin pool, and the published zero-shot bands."""
    import pyarrow as pa

    from kshot.bench.records.folder import Records
    from kshot.features import catalog

    rows = [
        (cell.dataset, cell.backbone, cell.tier, cell.shots, cell.seed, "dropped", 1.0)
        for cell in dict.fromkeys(
            cell for found in folders for cell in sorted(Records(found).dropped(), key=str)
        )
    ]
    for entry in catalog.datasets().values():
        if entry.band:
            where = (entry.name, catalog.BAND_BACKBONE, catalog.BAND_TIER, 0, -1)
            rows += [(*where, "band low", float(entry.band[0])), (*where, "band high", float(entry.band[1]))]
    names = ("dataset", "backbone", "tier", "shots", "seed", "quantity", "value")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
