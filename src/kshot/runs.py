"""Run a study, forget its failures, measure its probes, judge a method."""

import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kshot.bench.compact import forget
from kshot.bench.detector import Detection, detect, foreign_methods
from kshot.bench.diff import Difference, compare
from kshot.bench.engines import Engine
from kshot.bench.knobs import knob_oracle
from kshot.bench.records import Records, records_folder
from kshot.bench.run import (
    WHOLE,
    AnyStudy,
    StudyShard,
    choose_engine,
    complete,
    load_any,
    open_run,
    workers_environment,
)
from kshot.bench.status import failed_cells
from kshot.bench.study import DTYPES, Cell, MethodSpec, Study
from kshot.bench.work import check_stored, count_cells, find_work, finished_cells
from kshot.data.store import Store
from kshot.errors import StudyError
from kshot.methods import registry
from kshot.progress import Progress
from kshot.report.questions import OwnKnob, judgement, judgement_table
from kshot.report.table import Table
from kshot.results import Results, load_records
from kshot.stats.panel import CELL
from kshot.theory.probes.measure import GROUPS, probe_batches, probe_workload
from kshot.theory.probes.stored import ProbeFolder

logger = logging.getLogger("kshot")
FEATURES = Path("features")
CORES = os.cpu_count() or 1
# What `judge` runs a method beside.
COMPANIONS = ("zero_shot", "oracle_lambda", "loo_blend", "clap", "lpp")


@dataclass(frozen=True)
class Judgement:
    """A method's records beside its companions', the five questions as a table, and the answers in words."""

    results: Results
    table: Table
    words: tuple[str, ...]
    detections: tuple[Detection, ...]


def run(
    study: AnyStudy,
    *,
    records: Path | str | None = None,
    features: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
    method: Sequence[str] = (),
) -> Results:
    """Compute what a study lacks, and give back all its records; finished cells are never computed again.

    Parameters
    ----------
    study : name, path or Study
        A study of the package by its name, a TOML file, or a `Study`.
    records : path
        Where records are kept; records/STUDYNAME unless given.
    features : path
        Folder of stored features; what it lacks is taken from the package.
    workers : int
        Worker processes, one BLAS thread each; all cores unless given.
    engine : "local", "dask" or Engine
        Where cells are computed.
    method : sequence of str
        Methods of your own that join the study, as package.module:Class.
    """
    folder = complete(study, records, features, choose_engine(engine, workers), method)
    return load_records(folder, features=features)


def forget_failures(study: Study, records: Path | str | None = None, features: Path | str = FEATURES) -> None:
    """Delete the records of cells with a failed method, so that the next run computes them again."""
    target = Records(records_folder(records, study.name))
    open_run(study, Path(features), target)
    failed = failed_cells(target)
    forget(target, failed)
    logger.info("%d cells had a failed method", len(failed))


def measure(
    records: Path | str,
    *,
    features: Path | str = FEATURES,
    groups: Sequence[str] = GROUPS,
    tiers: Sequence[str] = ("dataset",),
    backbones: Sequence[str] = (),
    draws: int | None = None,
    workers: int = CORES,
    engine: Engine | str = "local",
    shard: StudyShard = WHOLE,
    keep: Callable[[Cell], bool] = lambda cell: True,
) -> ProbeFolder:
    """Measure the probes that are not stored yet beside the records, of the cells whose features are there; all
    backbones and draws unless given."""
    owner, store, stored = Records(Path(records)), Store(features), ProbeFolder(Path(records))
    check_stored(owner, store)
    work = find_work(owner.study(), store, owner, keep=lambda cell: cell.tier in tiers and keep(cell))
    if not work.cells:
        raise StudyError(next(iter(work.absent.values()), f"the study has no cell of the tier {', '.join(tiers)}."))
    seeds = sorted({cell.seed for cell in work.cells})[:draws]

    def asked_for(cell: Cell) -> bool:
        return cell.tier in tiers and cell.seed in seeds and (not backbones or cell.backbone in backbones)

    batches = probe_batches(work, stored, groups, asked_for, shard.index, shard.count)
    logger.info(f"{work.study.name}: {len(batches)} batches of probes to measure")
    if batches:
        with Progress("cells", count_cells(batches)) as progress:
            workload = probe_workload(work.study, Path(features), stored, batches)
            with workers_environment():
                choose_engine(engine, workers)(workload, progress.advance)
    return stored


def judge(
    method: str,
    study: AnyStudy,
    *,
    records: Path | str | None = None,
    features: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
) -> Judgement:
    """Run a method beside zero-shot, the oracle ratio, the LOO blend, CLAP and LP++, and answer the five questions.

    Parameters
    ----------
    method : str
        As package.module:Class or by the name it is registered under.
    study, records, features, workers, engine
        As in `run`; the records go to a folder of their own.
    """
    judged = judged_study(load_any(study), method)
    folder = records_folder(records, judged.name)
    results = run(judged, records=folder, features=features, workers=workers, engine=engine)
    oracle = knob_oracle(judged, finished_cells(Records(folder)), method, Store(features))
    knob = None
    if oracle is not None:
        values = {tuple(getattr(cell, name) for name in CELL): 100 * v for cell, v in oracle.accuracy.items()}
        knob = OwnKnob(oracle.name, values)
    detections = verify_methods(folder, features, judged.methods()[method])
    words = (*judgement(results.panel, method, knob), *map(str, detections))
    return Judgement(results, judgement_table(results.panel, method, knob), words, detections)


def judged_study(study: Study, method: str) -> Study:
    """The same cells with the method and its companions only, as a study with a name of its own."""
    known = [name for name in COMPANIONS if name in registry.names() and name != method]
    specs = tuple(MethodSpec(name, name) for name in (*known, method))
    slug = re.sub(r"[^A-Za-z0-9._+-]+", "-", method).strip("-.")
    grids = tuple(replace(grid, methods=specs) for grid in study.grids)
    return replace(study, name=f"{study.name}-judge-{slug}", grids=grids)


def verify_methods(records: Path | str, features: Path | str = FEATURES, *methods: MethodSpec) -> tuple[Detection, ...]:
    """Run one cell of each stratum again without the test labels; those that are not part of kshot unless given."""
    study = Records(records).study()
    return tuple(detect(study, methods or foreign_methods(study), Path(features), Path(records)))


def compare_precisions(
    study: AnyStudy,
    datasets: Sequence[str] = (),
    *,
    features: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
) -> Difference:
    """Run a study in float32 and in float64; what moves from the first to the second."""
    loaded = load_any(study).on_datasets(datasets) if datasets else load_any(study)
    folders = []
    for dtype in DTYPES:
        arm = loaded.in_precision(dtype)
        folders.append(records_folder(None, arm.name))
        run(arm, records=folders[-1], features=features, workers=workers, engine=engine)
    return compare(*folders)
