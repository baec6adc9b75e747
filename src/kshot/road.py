"""The paper from features to comparison: every arm, the probes, the reports and what was printed beside them."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kshot.bench.execution.engines import Engine
from kshot.bench.plan import Forecast, forecast
from kshot.bench.records.folder import Records
from kshot.bench.study import load_study
from kshot.bench.work import Work, find_work
from kshot.features.store import Store
from kshot.files import write_text
from kshot.progress import human_seconds
from kshot.report.numbers import count
from kshot.report.published.claims import paper_claims
from kshot.report.published.compare import as_csv, verdict_sentences
from kshot.report.published.rules import paper_rules
from kshot.report.table import Table
from kshot.reproduction import compare_folders
from kshot.results import load_records
from kshot.runs import measure, run

logger = logging.getLogger("kshot")
MATRIX, PRECISION, AUGMENTATION = "paper", "precision", "augmentation"


@dataclass(frozen=True)
class Leg:
    """One arm against what is recorded of it."""

    study: str
    work: Work
    expected: Forecast


def arms() -> list[str]:
    """The studies of the paper, the matrix first."""
    return list(paper_rules().paper["studies"])


def plan_road(features: Path, records: Path) -> Iterator[Leg]:
    """What each arm still takes; features need not be there yet."""
    for arm in arms():
        work = find_work(load_study(arm), Store(features), Records(records / arm), must_be_stored=False)
        yield Leg(arm, work, forecast(work))


def road_table(legs: list[Leg]) -> Table:
    """Cells, drops, time and disk of every arm."""
    rows = [
        (
            leg.study,
            count(len(leg.work.cells)),
            count(len(leg.work.dropped)),
            count(len(leg.work.missing)),
            count(len(leg.work.unstored)),
            human_seconds(leg.expected.cpu_seconds),
            f"{leg.expected.disk_bytes / 1e6:.0f} MB",
        )
        for leg in legs
    ]
    total = sum(leg.expected.cpu_seconds for leg in legs), sum(leg.expected.disk_bytes for leg in legs)
    return Table(
        key="road",
        title="The paper's road: what each arm still takes",
        columns=("study", "cells", "dropped", "missing", "strata not stored", "one core", "disk"),
        rows=tuple(rows),
        caption=f"In all about {human_seconds(total[0])} of one core and {total[1] / 1e6:.0f} MB; each method timed "
        "here on two small cells. Probes, reports and the comparison come on top.",
    )


def walk(
    features: Path, records: Path, wanted: list[str], *, workers: int, engine: Engine | str = "local"
) -> list[str]:
    """Compute what these arms lack, measure the matrix's probes, write the reports, compare; the verdict in words.

    Every step looks first at what is there, so a second walk goes on where the first ended.
    """
    for arm in wanted:
        run(arm, records=records / arm, features=features, workers=workers, engine=engine)
    if MATRIX in wanted:
        measure(records / MATRIX, features=features, workers=workers, engine=engine)
    for arm in wanted:
        matrix = records / MATRIX if Records(records / MATRIX).header.is_file() else None
        found = load_records(
            records / arm,
            features=features,
            base=matrix if arm == AUGMENTATION else None,
            precision=matrix if arm == PRECISION else None,
        )
        logger.info(f"report: {found.report().page}")
    lines, simulated = compare_folders(records, paper_claims())
    write_text(records / "published.csv", as_csv(lines))
    return [*verdict_sentences(lines, simulated), f"wrote {records / 'published.csv'}"]
