"""The paper from features to comparison: every arm, the probes, the reports and what was printed beside them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kshot.bench.engines import Engine
from kshot.bench.plan import FORECAST_BASIS, Forecast, forecast
from kshot.bench.records import Records, records_around
from kshot.bench.study import Study, load_study
from kshot.bench.work import Work, find_work
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


@dataclass(frozen=True)
class Leg:
    """One arm against what is recorded of it."""

    study: str
    work: Work
    expected: Forecast


def arms() -> list[str]:
    """The studies of the paper, the matrix first."""
    return list(paper_rules().paper["studies"])


def plan_road(features: Path, records: Path, wanted: Sequence[str]) -> list[Leg]:
    """What each of these arms still takes; features need not be there yet."""
    works = [
        find_work(load_study(arm), Store(features), Records(records / arm), must_be_stored=False) for arm in wanted
    ]
    expected = forecast(works, records_around(records))
    return [Leg(*leg) for leg in zip(wanted, works, expected, strict=True)]


def road_table(legs: Sequence[Leg]) -> Table:
    """Cells, drops, time and disk of every arm."""
    rows = [
        (
            leg.study,
            *map(count, (len(leg.work.cells), len(leg.work.dropped), len(leg.work.missing))),
            count(len(leg.work.unstored)),
            human_seconds(leg.expected.cpu_seconds),
            f"{leg.expected.disk_bytes / 1e6:.0f} MB",
        )
        for leg in legs
    ]
    columns = zip(*((len(x.work.cells), len(x.work.dropped), len(x.work.missing)) for x in legs), strict=True)
    seconds, size = sum(x.expected.cpu_seconds for x in legs), sum(x.expected.disk_bytes for x in legs)
    total = ("all", *(count(sum(column)) for column in columns), "", human_seconds(seconds), f"{size / 1e6:.0f} MB")
    return Table(
        key="road",
        title="The paper's road: what each arm still takes",
        columns=("study", "cells", "dropped", "missing", "not stored", "one core", "disk"),
        rows=(*rows, total),
        caption=f"Not stored: strata without features. {FORECAST_BASIS} Probes, reports, comparison come on top.",
        rule=len(rows),
        below_rule="total",
    )


def walk(
    features: Path, records: Path, studies: Sequence[Study], *, workers: int, engine: Engine | str = "local"
) -> list[str]:
    """Everything for these arms; the verdict in words.

    Every step looks first at what is there, so a second walk goes on where the first ended.
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
    """A report of each of these arms, beside the matrix where its table asks for it."""
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
    """Write the paper's numbers beside those of these records; the verdict in words."""
    lines, simulated = compare_folders(records, paper_claims())
    write_text(records / "published.csv", as_csv(lines))
    return [*verdict_sentences(lines, simulated), f"wrote {records / 'published.csv'}"]
