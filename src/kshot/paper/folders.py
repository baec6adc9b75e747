"""The arms of the paper are studies that share one cache: join them, and compare them with what the paper printed."""

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.bench.joined import joined
from kshot.bench.probes import probe_table
from kshot.bench.records import Records
from kshot.bench.study import Cell
from kshot.data import catalog
from kshot.errors import StudyError
from kshot.paper.arms import Arms, gather
from kshot.paper.claims import Claim, paper_rules
from kshot.paper.judge import judge
from kshot.paper.verdict import JudgedClaims
from kshot.types import BALANCED, CELL

if TYPE_CHECKING:
    import pyarrow as pa

MATRIX_STUDY = "paper"


def compare_folders(folder: Path, claims: Sequence[Claim], against: Path | None = None) -> JudgedClaims:
    """Every claim of the folder's run judged: against what was printed, or against another run's records."""
    other = None if against is None else gather_records(Records(against))
    return compare(gather_records(Records(folder)), claims, other, "" if against is None else str(against))


def compare(ours: Arms, claims: Sequence[Claim], theirs: Arms | None = None, named: str = "") -> JudgedClaims:
    return judge(claims, paper_rules(), ours, theirs, named)


def gather_records(cache: Records | None, first: "pa.Table | None" = None) -> Arms:
    """Records and probes of all arms in a cache, the matrix first; before them the table of another study."""
    names = [name for name in paper_rules().paper["studies"] if cache and cache.has(name)]
    asked = {name: cache.saved(name) for name in names} if cache else {}
    tables = {name: joined(saved, cache) for name, saved in asked.items()} if cache else {}
    tables = {name: table for name, table in tables.items() if table.num_rows}
    own = "" if first is None else first["study"][0].as_py()
    ordered = sorted(tables, key=lambda name: (name != MATRIX_STUDY, name))
    records = [*([] if first is None else [first]), *(tables[name] for name in ordered if name != own)]
    if not records:
        where = cache.folder if cache else "here"
        raise StudyError(f"{where} holds no records of the paper's studies. Run `kshot run paper` first.")
    probes = [probe_table(cache, name) for name in dict.fromkeys([*filter(None, [own]), *ordered])] if cache else []
    dropped = {cell for saved in asked.values() for cell in saved.dropped}
    return gather(records, [*probes, _facts(dropped)])


def _facts(dropped: set[Cell]) -> "pa.Table":
    """Cells dropped for a thin pool and published zero-shot bands, which records do not hold, as a table of probes."""
    import pyarrow as pa

    rows = [(*astuple(cell), "dropped", 1.0) for cell in dropped]
    for entry in catalog.datasets().values():
        if entry.band:
            where = (entry.name, catalog.BAND_BACKBONE, catalog.BAND_TIER, 0, -1, BALANCED)
            rows += [(*where, "band low", float(entry.band[0])), (*where, "band high", float(entry.band[1]))]
    names = (*CELL, "quantity", "value")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
