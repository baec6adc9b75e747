"""Run a study, compare heads, forget failures, measure probes, judge methods."""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path

from kshot.bench.compact import forget
from kshot.bench.detector import Detection, detect, foreign_methods
from kshot.bench.diff import Difference
from kshot.bench.diff import compare as compare_folders
from kshot.bench.engines import Engine
from kshot.bench.heads import Heads, method_specs
from kshot.bench.knobs import knob_oracle
from kshot.bench.records import Records, records_folder
from kshot.bench.run import WHOLE, StudyShard, choose_engine, complete, open_run, with_supports
from kshot.bench.status import failed_cells, run_status
from kshot.bench.study import DTYPES, AnyStudy, Cell, Grid, MethodSpec, Study, load_study, whole_numbers
from kshot.bench.work import check_stored, count_cells, find_work, finished_cells, needs_residue
from kshot.data.features import Features
from kshot.data.memory import MemoryStore
from kshot.data.store import Store, as_store
from kshot.errors import InputError, StudyError
from kshot.files import safe_name
from kshot.methods import registry
from kshot.progress import Progress
from kshot.report.questions import OwnKnob, five_questions
from kshot.report.table import Table
from kshot.results import Results, TemporaryFolder, load_records
from kshot.stats.panel import CELL
from kshot.theory.probes.measure import GROUPS, probe_batches, probe_workload
from kshot.theory.probes.stored import ProbeFolder

logger = logging.getLogger("kshot")
FEATURES = Path("features")
CORES = os.cpu_count() or 1
# Methods that `judge` runs beside the given ones.
COMPANIONS = ("zero_shot", "oracle_lambda", "loo_blend", "clap", "lpp")
# The tier of features without text, whose text methods are undefined.
NO_TEXT = "none"
# Longest part of a study's name that lists judged methods.
LONGEST_NAMES = 60

Where = Features | str | Iterable[Features | str]


@dataclass(frozen=True)
class Judgement:
    """The records of methods beside their companions', for each method the five questions as a table, and the answers
    in words."""

    results: Results
    tables: tuple[Table, ...]
    words: tuple[str, ...]
    detections: tuple[Detection, ...]


def run(
    study: AnyStudy,
    *,
    on: Where = (),
    records: Path | str | None = None,
    features: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
    method: Heads = (),
    supports: Path | str | None = None,
) -> Results:
    """Compute what a study lacks, and give back all its records; finished cells are never computed again.

    Parameters
    ----------
    study : name, path or Study
        A study of the package by its name, a TOML file, or a `Study`.
    on : Features, DATASET/BACKBONE/TIER, or several
        Run the study's shots, seeds and methods on these features instead of its own.
    records : path
        Where records are kept; records/STUDYNAME unless given.
    features : path
        Folder of stored features; what it lacks is taken from the package.
    workers : int
        Worker processes, one BLAS thread each; all cores unless given.
    engine : "local", "dask" or Engine
        Where cells are computed.
    method : heads
        Heads that join the study: package.module:Class, or objects; see `compare`.
    supports : path
        JSON file of the shots to use, {dataset: {K: {seed: ids or row numbers}}}; drawn here unless given.
    """
    strata, store = gather_features(on, features)
    asked = load_study(study).on_features(strata)
    asked = with_supports(asked, supports, store)
    folder = complete(asked, records, store, choose_engine(engine, workers), method_specs(method))
    return load_records(folder, features=store)


def compare(
    heads: Heads,
    features: Where,
    *,
    shots: int | Integral | Iterable[int] = (1, 2, 4, 8, 16),
    seeds: int | Integral | Iterable[int] = 5,
    tiers: str | Sequence[str] = (),
    records: Path | str | None = None,
    folder: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
    min_residue: int | None = None,
    verify: bool = True,
) -> Results:
    """Run heads on the same draws of the same features, and give back their records.

    Parameters
    ----------
    heads : names, objects, or {name: head}
        A name of `kshot ls methods`, package.module:Class, or an object such as `kshot.CLAP()`; also of a class that is
        defined in a notebook or script. Objects of one class are told apart by their parameters.
    features : Features, DATASET/BACKBONE/TIER, or several
        Features in memory or stored ones.
    shots, seeds : K labelled pictures per class, one or several, and how many draws (or which)
    tiers : names
        Only these prompt tiers; all that the features have unless given.
    records : path
        Where records are kept and continued; a folder that is removed with the results unless given.
    folder : path
        Folder of the stored features that are named.
    workers : int
        Processes, one BLAS thread each; all cores unless given. A class of this session runs in processes that inherit
        it, one for each cell; with one worker in this process, which a head on a GPU needs.
    engine : "local", "dask" or Engine
        Where cells are computed. Other machines cannot inherit anything: the classes must be importable there, and the
        features stored.
    min_residue : int
        Pool pictures of every class that heads which look at more than the shots need beside them. Without it such
        cells are dropped for all below five, where there are such heads.
    verify : bool
        Run one cell of each (dataset, backbone) again without the test labels, for heads that are not part of kshot,
        and warn where the predictions differ.
    """
    strata, store = gather_features(features, folder, (tiers,) if isinstance(tiers, str) else tiers)
    drawn = whole_numbers("shots", [int(shots)] if isinstance(shots, int | Integral) else shots, "compare")
    numbered = whole_numbers("seeds", range(int(seeds)) if isinstance(seeds, int | Integral) else seeds, "compare")
    specs = tuple(method_specs(heads))
    if not strata or not specs or not drawn or not numbered:
        raise InputError("compare needs at least one head, one of features, one K in shots and one seed.")
    grids = tuple(Grid((d,), (b,), (t,), drawn, numbered, specs) for d, b, t in sorted(set(strata)))
    temporary = TemporaryFolder() if records is None else None
    where = records_folder(temporary.path if temporary else records, "compare")
    if min_residue is None and not any(needs_residue(registry.info(spec.use, spec.params)) for spec in specs):
        # No head needs pool pictures beside the shots.
        min_residue = 0
    complete(Study("compare", grids, min_residue=min_residue), where, store, choose_engine(engine, workers))
    _warn_of_gaps(Records(where))
    for detection in verify_methods(where, store) if verify else ():
        logger.log(logging.WARNING if detection.differences else logging.INFO, str(detection))
    return replace(load_records(where, features=store), temporary=temporary)


def _warn_of_gaps(records: Records) -> None:
    """Say which cells are missing, which leaderboards show as an absence or a dash, and why."""
    dropped = {f"{cell.dataset} at K = {cell.shots}" for cell in records.dropped()}
    if dropped:
        few = "too few pool pictures beside the shots; min_residue=0 keeps what heads do without"
        logger.warning(f"left out: {', '.join(sorted(dropped))} ({few}).")
    for what, reasons in run_status(records.folder).reasons.items():
        method, _, status = what.rpartition(" ")
        if status == "failed":
            logger.warning(f"{method} failed in {reasons.total()} cells: {reasons.most_common(1)[0][0]}")


def gather_features(
    given: Where, folder: Path | str, tiers: Sequence[str] = ()
) -> tuple[list[tuple[str, str, str]], Path | Store]:
    """The (dataset, backbone, tier) of features, and where to read them: the folder, or a store in memory before it."""
    strata: list[tuple[str, str, str]] = []
    memory = MemoryStore(folder)
    for one in [given] if isinstance(given, Features | str) or not isinstance(given, Iterable) else given:
        if isinstance(one, str):
            strata.append(parse_stratum(one))
            continue
        if not isinstance(one, Features):
            raise InputError(
                f"{one!r:.80} are no features. Give DATASET/BACKBONE/TIER, `kshot.load_features(…)` or "
                "`kshot.Features.from_arrays(…)`."
            )
        strata += [(one.dataset, one.backbone, tier) for tier in one.tiers or [NO_TEXT]]
        if isinstance(one.store, MemoryStore) or one.store.root.resolve() != Path(folder).resolve():
            memory.take(one.store, one.dataset, one.backbone)
    chosen = [stratum for stratum in strata if not tiers or stratum[2] in tiers]
    if strata and not chosen:
        raise InputError(f"no features have tier {' or '.join(tiers)}; they have {', '.join({s[2] for s in strata})}.")
    return chosen, memory if memory.held else Path(folder)


def parse_stratum(text: str) -> tuple[str, str, str]:
    """Split DATASET/BACKBONE/TIER."""
    parts = text.split("/")
    if len(parts) != 3:
        raise InputError(f"features '{text}': write DATASET/BACKBONE/TIER; `kshot ls features` lists them.")
    return safe_name("dataset", parts[0]), safe_name("backbone", parts[1]), safe_name("tier", parts[2])


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
            choose_engine(engine, workers)(workload, progress.advance)
    return stored


def judge(
    method: Heads,
    study: AnyStudy,
    *,
    on: Where = (),
    records: Path | str | None = None,
    features: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
) -> Judgement:
    """Run methods beside zero-shot, the oracle ratio, the LOO blend, CLAP and LP++, and answer the five questions of
    each.

    Parameters
    ----------
    method : heads
        One or several, as `compare` takes them.
    study, on, records, features, workers, engine
        As in `run`; the records go to a folder of their own.
    """
    strata, store = gather_features(on, features)
    specs = method_specs(method)
    asked = load_study(study).on_features(strata)
    judged = judged_study(asked, specs)
    folder = complete(judged, records, store, choose_engine(engine, workers))
    results, cells = load_records(folder, features=store), finished_cells(Records(folder))
    tables, words = [], []
    for spec in specs:
        oracle, knob = knob_oracle(judged, cells, spec, as_store(store)), None
        if oracle is not None:
            values = {tuple(getattr(cell, name) for name in CELL): 100 * v for cell, v in oracle.accuracy.items()}
            knob = OwnKnob(oracle.name, values)
        table, answers = five_questions(results.panel, spec.name, knob)
        if len(specs) > 1:
            table = replace(table, key=f"{table.key}-{_slug(spec.name)}")
            answers = [f"{results.panel.titles[spec.name]}: {answer}" for answer in answers]
        tables.append(table)
        words += answers
    detections = verify_methods(folder, store, *specs)
    return Judgement(results, tuple(tables), (*words, *map(str, detections)), detections)


def judged_study(study: Study, specs: Sequence[MethodSpec]) -> Study:
    """The same cells with these methods and their companions only, as a study with a name of its own."""
    asked = {spec.name for spec in specs}
    known = [MethodSpec(name, name) for name in COMPANIONS if name in registry.names() and name not in asked]
    names = "+".join(_slug(spec.name) for spec in specs)
    if len(names) > LONGEST_NAMES:
        names = hashlib.sha256(names.encode()).hexdigest()[:16]
    grids = tuple(replace(grid, methods=(*known, *specs)) for grid in study.grids)
    return replace(study, name=f"{study.name}-judge-{names}", grids=grids)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")


def verify_methods(
    records: Path | str, features: Path | str | Store = FEATURES, *methods: MethodSpec
) -> tuple[Detection, ...]:
    """Run one cell of each stratum again without the test labels; those that are not part of kshot unless given."""
    study = Records(records).study()
    return tuple(detect(study, methods or foreign_methods(study), as_store(features), Path(records)))


def compare_precisions(
    study: AnyStudy,
    datasets: Sequence[str] = (),
    *,
    features: Path | str = FEATURES,
    workers: int = CORES,
    engine: Engine | str = "local",
) -> Difference:
    """Run a study in float32 and in float64; what moves from the first to the second."""
    loaded = load_study(study).on_datasets(datasets) if datasets else load_study(study)
    folders = []
    for dtype in DTYPES:
        arm = loaded.in_precision(dtype)
        folders.append(records_folder(None, arm.name))
        run(arm, records=folders[-1], features=features, workers=workers, engine=engine)
    return compare_folders(*folders)
