"""The state of a run: the records that a study asked for last, and those that are there."""

from collections import Counter
from dataclasses import dataclass

from kshot.bench.records import Records, SavedQuery


@dataclass(frozen=True)
class RunStatus:
    """Counts of records, `pairs` of dataset and backbone begun and asked for, and per method the records by status with
    the reasons of the bad ones."""

    study: str
    total: int
    done: int
    cells: int
    dropped: int
    pairs: tuple[int, int]
    methods: dict[str, Counter]
    reasons: dict[str, Counter]

    @property
    def missing(self) -> int:
        return self.total - self.done

    @property
    def failed(self) -> dict[str, int]:
        """How many records of each method are failures."""
        return {name: counts["failed"] for name, counts in sorted(self.methods.items()) if counts["failed"]}


def run_status(records: Records, saved: SavedQuery) -> RunStatus:
    """Count what is there of what a study asked for."""
    kept = records.table(saved.keys(), ["key", "status", "reason"])
    columns = (kept[name].to_pylist() for name in ("key", "status", "reason"))
    state = {key: (status, reason) for key, status, reason in zip(*columns, strict=True)}
    methods: dict[str, Counter] = {}
    reasons: dict[str, Counter] = {}
    done, asked, begun = 0, set(), set()
    names = ("dataset", "backbone", "method", "key", "reason")
    rows = list(zip(*(saved.table[name].to_pylist() for name in names), strict=True))
    for dataset, backbone, method, key, why in rows:
        asked.add((dataset, backbone))
        counts = methods.setdefault(method, Counter())
        if key and key not in state:
            continue
        status, reason = state[key] if key else ("undefined", why)
        counts[status] += 1
        if key:
            done += 1
            begun.add((dataset, backbone))
        if reason:
            reasons.setdefault(f"{method} {status}", Counter())[reason] += 1
    total = sum(bool(row[3]) for row in rows)
    cells = len(set(zip(*(saved.table[name].to_pylist() for name in saved.table.schema.names[:6]), strict=True)))
    pairs = len(begun), len(asked)
    return RunStatus(saved.study.name, total, done, cells, len(saved.dropped), pairs, methods, reasons)
