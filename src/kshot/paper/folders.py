"""Find the records of the paper's studies and compare them with what the paper printed."""

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.bench.record import CELL
from kshot.bench.records import Records, load_table, records_around
from kshot.data import catalog
from kshot.errors import StudyError
from kshot.paper.arms import Arms, gather
from kshot.paper.claims import Claim, paper_rules
from kshot.paper.judge import judge
from kshot.paper.verdict import JudgedClaims
from kshot.theory.probes.stored import ProbeFolder
from kshot.types import BALANCED

if TYPE_CHECKING:
    import pyarrow as pa

MATRIX_STUDY = "paper"


def compare_folders(folder: Path, claims: Sequence[Claim], against: Path | None = None) -> JudgedClaims:
    """Every claim of the folder's run judged: against what was printed, or against another run's records."""
    other = None if against is None else gather_folder(against)
    return judge(claims, paper_rules(), gather_folder(folder), other, "" if against is None else str(against))


def gather_folder(folder: Path) -> Arms:
    """Records and probes of all arms in or beside a folder."""
    folders = arm_folders(folder)
    probes = [ProbeFolder(path).load() for path in folders]
    return gather([load_table(path) for path in folders], [*probes, _facts(folders)])


def arm_folders(folder: Path) -> list[Path]:
    """The folder and the arms beside it, or the records folders in it; the paper's matrix first."""
    own = (folder / "study.json").is_file()
    around = records_around(folder.parent if own else folder)
    imported = own and bool(Records(folder).imported())
    others = [path for path in around if path != folder and bool(Records(path).imported()) == imported and _begun(path)]
    names = {path: Records(path).study().name for path in others}
    wanted = [path for path, name in names.items() if name in paper_rules().paper["studies"]]
    if not own and not wanted:
        raise StudyError(f"{folder} holds no records of the paper's studies. Run `kshot run paper` first.")
    return [*([folder] if own else []), *sorted(wanted, key=lambda path: (names[path] != MATRIX_STUDY, path))]


def is_arm(folder: Path) -> bool:
    """Whether these records belong to an arm whose matrix lies beside them."""
    own, *around = (Records(path).study().name for path in arm_folders(folder))
    return own != MATRIX_STUDY and MATRIX_STUDY in around


def _begun(folder: Path) -> bool:
    return bool(Records(folder).loose() or Records(folder).joined())


def _facts(folders: Sequence[Path]) -> "pa.Table":
    """Cells dropped for a thin pool and published zero-shot bands, which records do not hold, as a table of probes."""
    import pyarrow as pa

    dropped = {cell for path in folders for cell in Records(path).dropped()}
    rows = [(*astuple(cell), "dropped", 1.0) for cell in dropped]
    for entry in catalog.datasets().values():
        if entry.band:
            where = (entry.name, catalog.BAND_BACKBONE, catalog.BAND_TIER, 0, -1, BALANCED)
            rows += [(*where, "band low", float(entry.band[0])), (*where, "band high", float(entry.band[1]))]
    names = (*CELL, "quantity", "value")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
