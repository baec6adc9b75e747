"""Whether a study may have a records folder that another one filled, and what it lacks if not."""

import json
from collections.abc import Mapping
from pathlib import Path

from kshot.bench.study import Cell, MethodSpec, Study
from kshot.types import BALANCED


def addable(study: Study, found: Study) -> list[str]:
    """Methods that only the folder's study has and `--method` can name."""
    if (study.name, study.dtype) != (found.name, found.dtype):
        return []
    own = study.methods()
    return [name for name, spec in found.methods().items() if name not in own and spec == MethodSpec(name, name)]


def contradiction(study: Study, found: Study) -> str | None:
    """Why records of the study `found` do not belong to `study`; None where they do."""
    if study.hash == found.hash or study.extends(found):
        return None
    return (
        f"holds records of study '{found.name}' with hash {found.hash}, but this is '{study.name}' with hash "
        f"{study.hash}, which {_shortfall(study, found)}; cells and methods may only be added."
    )


def is_of(path: Path, study_hash: str, features: Mapping[str, str]) -> bool:
    """Whether every record of a file names this study and these features."""
    import pyarrow.parquet as pq

    columns = ("study_hash", "dataset", "backbone", "tier", "feature_hashes")
    rows = {tuple(row.values()) for row in pq.ParquetFile(path).read(columns=list(columns)).to_pylist()}
    return all(
        owner == study_hash
        and all(
            features.get(f"{dataset}/{backbone}/{f'text-{tier}' if part == 'text' else part}") == digest
            for part, digest in json.loads(digests).items()
        )
        for owner, dataset, backbone, tier, digests in rows
    )


def _shortfall(study: Study, found: Study) -> str:
    if study.name != found.name:
        return "is another one"
    if study.dtype != found.dtype:
        return f"computes in {study.dtype} and not in {found.dtype}"
    if study.min_residue != found.min_residue:
        return f"has min_residue {study.min_residue} and not {found.min_residue}"
    own, theirs, cells = study.methods(), found.methods(), study.cells()
    gone = [name for name in theirs if name not in own]
    changed = [name for name in theirs if name in own and own[name] != theirs[name]]
    lost = [cell for cell in found.cells() if cell not in cells]
    thinner = [
        cell
        for cell, specs in found.cells().items()
        if any(spec.name not in (*gone, *changed) and spec not in cells.get(cell, specs) for spec in specs)
    ]
    parts = []
    if gone:
        parts.append(f"lacks the method{_s(gone)} {', '.join(gone)}")
    if changed:
        was = ", ".join(f"{name} (was {theirs[name]}, is {own[name]})" for name in changed)
        parts.append(f"changes the method{_s(changed)} {was}")
    if lost:
        parts.append(f"lacks {len(lost):,} cell{_s(lost)}, such as {_shown(lost[0])}")
    if thinner:
        parts.append(f"has fewer methods in {len(thinner):,} cell{_s(thinner)}, such as {_shown(thinner[0])}")
    return " and ".join(parts)


def _s(found: list) -> str:
    return "s" if len(found) > 1 else ""


def _shown(cell: Cell) -> str:
    profile = "" if cell.profile == BALANCED else f", {cell.profile}"
    return f"{cell.dataset}/{cell.backbone}/{cell.tier} with shots {cell.shots} and seed {cell.seed}{profile}"
