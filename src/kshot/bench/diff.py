"""Two records folders, cell by cell: what is where, what moved, and what might explain it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kshot.bench.record import KEY, SECONDS
from kshot.bench.records import Records, load_table

# Measured or fitted in the working precision.
ROUNDED = {"lambda_js", "d2", "v", "share", "selected"}
CIRCUMSTANCES = ("study_hash", "version", "code", "dtype", "feature_hashes")


@dataclass(frozen=True)
class Move:
    """How one method's records differ between the folders; accuracies in percentage points, second minus first."""

    method: str
    records: int
    identical: int
    flipped: float
    mean_change: float
    largest_change: float


@dataclass(frozen=True)
class Difference:
    """`circumstances` lists what differs around the numbers: versions, dtypes, features, machines."""

    only_first: int
    only_second: int
    moves: tuple[Move, ...]
    circumstances: dict[str, tuple[list[str], list[str]]]

    @property
    def same(self) -> bool:
        return not (self.only_first or self.only_second) and all(m.identical == m.records for m in self.moves)


def compare(first: Path, second: Path) -> Difference:
    """Compare the records both folders have; `identical` means every column but the seconds and circumstances, and
    between two precisions, where every measured number moves in its last digits, the same predictions."""
    rows = [
        {tuple(row[name] for name in KEY): row for row in load_table(folder).to_pylist()} for folder in (first, second)
    ]
    shared = [key for key in rows[0] if key in rows[1]]
    moves = []
    for method in dict.fromkeys(key[-1] for key in shared):
        pairs = [(rows[0][key], rows[1][key]) for key in shared if key[-1] == method]
        moves.append(_move(method, pairs))
    around = {n: (_values(rows[0], shared, n), _values(rows[1], shared, n)) for n in CIRCUMSTANCES}
    around["machine"] = (_machines(first), _machines(second))
    return Difference(
        only_first=len(rows[0]) - len(shared),
        only_second=len(rows[1]) - len(shared),
        moves=tuple(moves),
        circumstances={name: both for name, both in around.items() if both[0] != both[1]},
    )


def _move(method: str, pairs: list[tuple[dict, dict]]) -> Move:
    identical = sum(_identical(a, b) for a, b in pairs)
    scored = [(a, b) for a, b in pairs if a["accuracy"] is not None and b["accuracy"] is not None]
    changes = np.array([100 * (b["accuracy"] - a["accuracy"]) for a, b in scored])
    return Move(
        method=method,
        records=len(pairs),
        identical=identical,
        flipped=float(np.mean([_flipped(a, b) for a, b in scored])) if scored else 0.0,
        mean_change=float(changes.mean()) if scored else 0.0,
        largest_change=float(changes[np.abs(changes).argmax()]) if scored else 0.0,
    )


def _identical(a: dict, b: dict) -> bool:
    ignored = {*SECONDS, *CIRCUMSTANCES, "study"}
    if a["dtype"] != b["dtype"]:
        ignored |= ROUNDED
    return all(a[name] == b[name] for name in a.keys() - ignored)


def _flipped(a: dict, b: dict) -> float:
    """Share of test pictures that one got right and the other wrong."""
    if len(a["hits"]) != len(b["hits"]):
        return 1.0
    first, second = (np.frombuffer(row["hits"], np.uint8) for row in (a, b))
    return int(np.unpackbits(first ^ second).sum()) / max(a["n_test"], 1)


def _values(rows: dict[tuple, dict], shared: list[tuple], name: str) -> list[str]:
    return sorted({rows[key][name] for key in shared})


def _machines(folder: Path) -> list[str]:
    return sorted({f"{run['processor']}, numpy {run['numpy']}" for run in Records(folder).runs()})
