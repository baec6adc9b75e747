"""Given shots: a JSON file {dataset: {K: {seed: pictures}}}, checked against the stored pools.

Pictures are ids or row numbers of the stored part, as a list or as {class: list}.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kshot.data.store import Store
from kshot.data.stratum import Pool, pool_rows
from kshot.errors import StudyError

# Dataset, backbone, shots and seed.
Draw = tuple[str, str, int, int]


def read_supports(path: Path, draws: Iterable[Draw], store: Store) -> str:
    """The ids of these draws as JSON; refused where a picture is absent, of another class, or one too many or few."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(f"--supports {path} cannot be read as JSON ({error}).") from None
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    pools: dict[tuple[str, str], Pool] = {}
    for dataset, backbone, shots, seed in sorted(set(draws)):
        if (dataset, backbone) not in pools:
            pools[dataset, backbone] = pool_rows(store, dataset, backbone)
        by_seed = found.setdefault(dataset, {}).setdefault(str(shots), {})
        where = f"{path}: {dataset}, {shots} shots, seed {seed}"
        # Row numbers count the rows of the first backbone; the others must have the same pictures.
        entry = by_seed.get(str(seed)) or _entry(content, path, dataset, shots, seed)
        by_seed[str(seed)] = _checked(entry, pools[dataset, backbone], shots, f"{where}, {backbone}")
    return json.dumps(found, sort_keys=True)


def _entry(content: Any, path: Path, *keys: str | int) -> Any:
    for key in map(str, keys):
        if not isinstance(content, dict) or key not in content:
            known = ", ".join(content) if isinstance(content, dict) else type(content).__name__
            raise StudyError(
                f"{path} has no shots of {keys[0]} with K = {keys[1]} and seed {keys[2]}: no '{key}' among {known}. "
                "Write shots and seeds that it has into the study file."
            )
        content = content[key]
    return content


def _checked(entry: Any, pool: Pool, shots: int, where: str) -> list[str]:
    """The ids of one draw, class by class in the order given."""
    if isinstance(entry, dict) and all(isinstance(ones, list) for ones in entry.values()):
        pairs = [(_class(name, pool, where), one) for name, ones in entry.items() for one in ones]
    elif isinstance(entry, list):
        pairs = [(None, one) for one in entry]
    else:
        raise StudyError(f"{where}: give a list of ids or row numbers, or {{class: list}}, not {str(entry)[:40]}.")
    rows = [_row(one, pool, where) for _, one in pairs]
    for (stated, one), row in zip(pairs, rows, strict=True):
        if stated not in (None, pool.labels[row]):
            raise StudyError(
                f"{where}: {one} is a picture of class '{pool.classes[pool.labels[row]]}', not of "
                f"'{pool.classes[stated]}'."
            )
    if len(set(rows)) < len(rows):
        raise StudyError(f"{where}: a picture is there twice.")
    counts = np.bincount(pool.labels[rows], minlength=len(pool.classes))
    wrong = np.flatnonzero(counts != shots)
    if len(wrong):
        raise StudyError(
            f"{where}: class '{pool.classes[wrong[0]]}' has {counts[wrong[0]]} shots instead of {shots}"
            f"{f', and so have {len(wrong) - 1} other classes a wrong number' if len(wrong) > 1 else ''}."
        )
    return [pool.ids[row] for row in sorted(rows, key=lambda row: pool.labels[row])]


def _class(name: str, pool: Pool, where: str) -> int:
    if name in pool.classes:
        return pool.classes.index(name)
    if name.isdecimal() and int(name) < len(pool.classes):
        return int(name)
    raise StudyError(f"{where}: '{name}' is neither a class name nor a number below {len(pool.classes)}.")


def _row(one: Any, pool: Pool, where: str) -> int:
    row = pool.place.get(one) if isinstance(one, str) else one
    if type(row) is not int or not 0 <= row < len(pool.ids):
        kind = "picture" if isinstance(one, str) else "row"
        raise StudyError(f"{where}: there is no {kind} {str(one)[:80]}; the part has {len(pool.ids)} pictures.")
    if not pool.inside[row]:
        raise StudyError(f"{where}: {one} is a test picture, not one of the pool.")
    return row
