"""Where a run stands, read from its records folder alone."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kshot.bench.records import Records, query


@dataclass(frozen=True)
class Standing:
    """Counts of cells, and per method the records by status with the reasons of the bad ones."""

    study: str
    hash: str
    total: int
    dropped: int
    done: int
    methods: dict[str, Counter]
    reasons: dict[str, Counter]

    @property
    def missing(self) -> int:
        return self.total - self.dropped - self.done


def standing(folder: Path) -> Standing:
    records = Records(folder)
    study = records.study()
    cells = study.cells()
    done = len(records.done())
    methods: dict[str, Counter] = {name: Counter() for name in study.methods()}
    reasons: dict[str, Counter] = {}
    if done:
        rows = query(folder, "select method, status, reason, count(*) from records group by all order by all")
        for method, status, reason, count in rows:
            methods.setdefault(method, Counter())[status] += count
            if reason:
                reasons.setdefault(f"{method} {status}", Counter())[reason] += count
    return Standing(study.name, study.hash, len(cells), len(records.dropped()), done, methods, reasons)


def count_done(folder: Path) -> tuple[int, int]:
    """Cells recorded and cells wanted."""
    records = Records(folder)
    study = records.study()
    return len(records.done()), len(study.cells()) - len(records.dropped())
