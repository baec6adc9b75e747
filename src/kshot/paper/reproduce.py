"""Reproduce the paper from features: every arm, the probes, the reports and the comparison."""

import logging
from collections.abc import Sequence
from pathlib import Path

from kshot.bench.engines import Engine
from kshot.bench.plan import FORECAST_BASIS, forecast
from kshot.bench.records import Records, records_around
from kshot.bench.study import Study, load_study
from kshot.bench.work import find_work
from kshot.data.store import Store
from kshot.files import write_text
from kshot.paper.claims import paper_claims
from kshot.paper.compare import as_csv, verdict_sentences
from kshot.paper.folders import MATRIX_STUDY, compare_folders
from kshot.paper.rules import paper_rules
from kshot.progress import human_seconds
from kshot.report.table import Table, count
from kshot.results import load_records
from kshot.runs import measure, run

logger = logging.getLogger("kshot")
PRECISION, AUGMENTATION = "precision", "augmentation"


def arms() -> list[str]:
    """The studies of the paper, the matrix first."""
    return list(paper_rules().paper["studies"])


def plan_table(features: Path, records: Path, wanted: Sequence[str]) -> Table:
    """Missing cells, drops, time and disk of each of these arms; features need not be stored yet."""
    works = [
        find_work(load_study(arm), Store(features), Records(records / arm), must_be_stored=False) for arm in wanted
    ]
    sizes = [(len(work.cells), len(work.dropped), len(work.missing)) for work in works]
    costs = [(cost.cpu_seconds, cost.disk_bytes) for cost in forecast(works, records_around(records))]
    rows = [
        (arm, *map(count, size), count(len(work.unstored)), *_cost(*cost))
        for arm, work, size, cost in zip(wanted, works, sizes, costs, strict=True)
    ]
    all_sizes, all_costs = (map(sum, zip(*columns, strict=True)) for columns in (sizes, costs))
    return Table(
        key="plan",
        title="What each arm of the paper still takes",
        columns=("study", "cells", "dropped", "missing", "not stored", "one core", "disk"),
        rows=(*rows, ("all", *map(count, all_sizes), "", *_cost(*all_costs))),
        caption=f"Not stored: strata without features. {FORECAST_BASIS} Probes, reports, comparison come on top.",
        rule=len(rows),
        below_rule="total",
    )


def _cost(seconds: float, disk_bytes: float) -> tuple[str, str]:
    return human_seconds(seconds), f"{disk_bytes / 1e6:.0f} MB"


def reproduce(
    features: Path, records: Path, studies: Sequence[Study], *, workers: int, engine: Engine | str = "local"
) -> list[str]:
    """Run these arms, measure probes, write reports, compare; returns the verdict in sentences.

    Every step keeps what is there, so a second call goes on where the first ended.
    """
    compute_arms(features, records, studies, workers=workers, engine=engine)
    write_reports(features, records, [study.name for study in studies])
    return compare_arms(records)


def compute_arms(
    features: Path, records: Path, studies: Sequence[Study], *, workers: int, engine: Engine | str = "local"
) -> None:
    """Compute what these arms lack, and measure the matrix's probes."""
    for study in studies:
        run(study, records=records / study.name, features=features, workers=workers, engine=engine)
        if study.name == MATRIX_STUDY:
            measure(records / MATRIX_STUDY, features=features, workers=workers, engine=engine)


def write_reports(features: Path, records: Path, names: Sequence[str]) -> None:
    """Write the report of each of these arms; two of them are compared with the matrix."""
    matrix = records / MATRIX_STUDY if Records(records / MATRIX_STUDY).header.is_file() else None
    for name in names:
        found = load_records(
            records / name,
            features=features,
            base=matrix if name == AUGMENTATION else None,
            precision=matrix if name == PRECISION else None,
        )
        logger.info(f"report: {found.report().page}")


def compare_arms(records: Path) -> list[str]:
    """Write published.csv, the paper's numbers beside ours; returns the verdict in sentences."""
    judged = compare_folders(records, paper_claims())
    write_text(records / "published.csv", as_csv(judged))
    return [*verdict_sentences(judged), f"wrote {records / 'published.csv'}"]
