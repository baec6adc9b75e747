"""Run a study, compare heads, judge methods, measure probes: each is a query on one cache."""

import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kshot.bench.heads import Heads, method_specs
from kshot.bench.knobs import knob_oracle, made, oracle_accuracies
from kshot.bench.leak_check import check_own
from kshot.bench.probes import ALL_PROBES, ProbeSelection, probe_query, probe_table
from kshot.bench.query import Query, query, thin_draws
from kshot.bench.records import PROBES, Records
from kshot.bench.run import fill
from kshot.bench.study import AnyStudy, Cell, Grid, MethodSpec, Study, load_study, whole_numbers
from kshot.data.catalog import BAND_BACKBONE
from kshot.data.episode import SMALLEST_RESIDUE
from kshot.data.features import Features
from kshot.data.gate import failed_gates
from kshot.data.memory import MemoryStore
from kshot.data.store import Store, as_store
from kshot.data.supports import read_supports
from kshot.errors import InputError, StudyError
from kshot.files import safe_name
from kshot.methods import registry
from kshot.methods.knob import Knob
from kshot.report.notes import leak_words
from kshot.report.questions import OwnKnob, five_questions
from kshot.report.table import Table
from kshot.results import Results, TemporaryFolder, load_records
from kshot.stats.panel import CELL
from kshot.types import BALANCED
from kshot.workers import WHOLE, Shard, Workers

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("kshot")
FEATURES, RECORDS = Path("features"), Path("records")
CORES = os.cpu_count() or 1
# Methods that `judge` runs beside the given ones.
COMPANIONS = ("zero_shot", "oracle_lambda", "loo_blend", "clap", "lpp")
# The tier of features without text, whose text methods are undefined.
NO_TEXT = "none"

Where = Features | str | Iterable[Features | str]


@dataclass(frozen=True)
class Judgement:
    """The records of methods beside their companions', for each method the five questions as a table, and the answers
    in words."""

    results: Results
    tables: tuple[Table, ...]
    words: tuple[str, ...]
    leaks: tuple[str, ...] = ()


def run(
    study: AnyStudy,
    *,
    on: Where = (),
    heads: Heads = (),
    shots: Sequence[int] = (),
    seeds: Sequence[int] = (),
    supports: Path | str | None = None,
    records: Path | str = RECORDS,
    features: Path | str = FEATURES,
    workers: int = CORES,
    backend: str = "loky",
    retry: bool = False,
    shard: tuple[int, int] = (0, 1),
    keep: Callable[[Cell], bool] | None = None,
    **renamed: Any,
) -> Results:
    """Compute what a study lacks, and give back all its records; what is there is never computed again.

    Parameters
    ----------
    study : name, path or Study
        A study of the package by its name, a TOML file, or a `Study`.
    on : Features, DATASET/BACKBONE/TIER, or several
        Run the study's shots, seeds and methods on these features instead of its own.
    heads : heads
        Heads that join the study: package.module:Class, or objects; see `compare`.
    shots, seeds : whole numbers
        Instead of the study's own.
    supports : path
        JSON file of the shots to use, {dataset: {K: {seed: ids or row numbers}}}; drawn here unless given.
    records : path
        The cache of records, one for all studies.
    features : path
        Folder of stored features; what it lacks is taken from the package.
    workers : int
        Worker processes, one BLAS thread each; all cores unless given.
    backend : "loky" or "dask:ADDRESS"
        Where cells are computed: processes of this machine, or a cluster that runs.
    retry : bool
        Compute records that failed again.
    shard : (index, count)
        Compute this part of the cells.
    keep : function of a cell
        Only cells for which it is true, and whose features are stored.
    """
    refuse_renamed("run", renamed)
    strata, store = gather_features(on, features)
    asked = load_study(study).on_features(strata).with_methods(method_specs(heads))
    asked = with_supports(asked.with_shots(shots).with_seeds(seeds), supports, store)
    plan = Plan(store, Records(records), Workers(workers, backend), Shard(*shard), retry, keep)
    return plan.results(asked)


@dataclass(frozen=True)
class Plan:
    """Where a study is computed, from which features, and where its records are kept."""

    features: Path | Store
    records: Records
    workers: Workers
    shard: Shard = WHOLE
    retry: bool = False
    keep: Callable[[Cell], bool] | None = None

    def results(self, study: Study, extra: Sequence[MethodSpec] = ()) -> Results:
        """Ask for a study's records, compute what is missing, and join; `extra` methods are computed and not shown."""
        store = as_store(self.features)
        asked = query(study.with_methods(extra), store, keep=self.keep)
        hidden = {spec.name for spec in extra}
        cells = {c: {n: one for n, one in named.items() if n not in hidden} for c, named in asked.cells.items()}
        shown = replace(asked, cells=cells)
        if not shown.keys():
            raise StudyError(f"no record can be computed: {_why_nothing(shown)} Give fewer shots or more pictures.")
        self.records.save(shown)
        _warn_of_gates(study, store)
        fill(asked, self.features, self.records, self.workers, self.shard, self.retry)
        return self._checked(shown, load_records(self.records.folder, study.name, features=self.features))

    def _checked(self, asked: Query, results: Results) -> Results:
        """The results with what the leak check finds; of shards, the last one looks."""
        if results.saved and not (self.shard.count > 1 and results.unfinished):
            checked = check_own(asked, results.records, as_store(self.features), results.saved.checked)
            if checked:
                self.records.save(asked, checked=checked)
                results = replace(results, saved=self.records.saved(asked.study.name))
        for words in leak_words(results.leaks):
            logger.warning(words)
        return results


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
    backend: str = "loky",
    least_left: int = SMALLEST_RESIDUE,
    **renamed: Any,
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
        Processes, one BLAS thread each; all cores unless given. With one in this process, which a head on a GPU needs.
    backend : "loky" or "dask:ADDRESS"
        Where cells are computed: processes of this machine, or a cluster that runs.
    least_left : int
        Heads that look at pool pictures beside the shots are undefined where a class keeps fewer than so many.

    Examples
    --------
    >>> import kshot
    >>> heads = ["ncm", kshot.GDA(alpha=10.0)]
    >>> results = kshot.compare(heads, "tuxpaint/lite0/photo", shots=[2], seeds=2, records="records", workers=1)
    >>> results.to_arrow().num_rows
    4
    """
    refuse_renamed("compare", renamed)
    strata, store = gather_features(features, folder, (tiers,) if isinstance(tiers, str) else tiers)
    specs = tuple(method_specs(heads))
    if not specs:
        raise InputError("compare needs at least one head.")
    grids = _grids("compare", strata, shots, seeds, specs)
    temporary = TemporaryFolder() if records is None else None
    cache = Records(temporary.path if temporary else Path(str(records)))
    plan = Plan(store, cache, Workers(workers, backend))
    results = plan.results(Study("compare", grids, least_left=least_left))
    for words in results.failures():
        logger.warning(words)
    return replace(results, temporary=temporary)


def _grids(
    function: str,
    strata: Iterable[tuple[str, str, str]],
    shots: int | Integral | Iterable[int],
    seeds: int | Integral | Iterable[int],
    specs: tuple[MethodSpec, ...] = (),
) -> tuple[Grid, ...]:
    """The draws of given strata: a number of seeds stands for the first ones."""
    drawn = whole_numbers("shots", [int(shots)] if isinstance(shots, int | Integral) else shots, function)
    numbered = whole_numbers("seeds", range(int(seeds)) if isinstance(seeds, int | Integral) else seeds, function)
    grids = tuple(Grid((d,), (b,), (t,), drawn, numbered, specs) for d, b, t in sorted(set(strata)))
    if not grids or not drawn or not numbered:
        raise InputError(f"{function} needs at least one of features, one K in shots and one seed.")
    return grids


RENAMED = {
    "min_residue": "least_left",
    "engine": "backend",
    "method": "heads",
    "verify": "nothing: heads of your own are always checked",
}


def refuse_renamed(function: str, given: dict[str, Any]) -> None:
    """Raise for an argument that has another name now, as Python does for one that never was."""
    for name in given:
        now = f"; it is called {RENAMED[name]} now" if name in RENAMED else ""
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'{now}")


def drop_head(study: Study, name: str, records: Path | str, features: Path | str) -> int:
    """Forget the records of a method in a study; returns how many there were."""
    asked = query(study, Store(features))
    return Records(records).drop({one.key for _, one in asked.asked() if one.spec.name == name and one.key})


def with_supports(study: Study, file: Path | str | None, features: Path | str | Store) -> Study:
    """The study with the shots of a file, which are checked; as it is without a file."""
    if file is None:
        return study
    if any(grid.profiles != (BALANCED,) for grid in study.grids):
        raise StudyError("--supports gives K pictures of every class; leave other profiles out of the study.")
    store = as_store(features)
    return replace(study, supports=read_supports(Path(file), thin_draws(study, store), store))


def _why_nothing(asked: Any) -> str:
    reasons = {one.reason for _, one in asked.asked() if one.reason} | set(asked.absent.values())
    return "; ".join(sorted(reasons)[:3]) + "." if reasons else "a class has too few pool pictures for every K."


def _warn_of_gates(study: Study, store: Store) -> None:
    banded = sorted({(c.dataset, c.backbone) for c in study.cells() if c.backbone == BAND_BACKBONE})
    for warning in failed_gates(store, banded).values() if banded else ():
        logger.warning(f"{warning}. These features fail the sanity gate: see `kshot features check`.")


def gather_features(
    given: Where, folder: Path | str, tiers: Sequence[str] = ()
) -> tuple[list[tuple[str, str, str]], Path | Store]:
    """The (dataset, backbone, tier) of features, and where to read them: the folder, or a store in memory before it."""
    strata: list[tuple[str, str, str]] = []
    memory = MemoryStore(Path(folder).absolute())
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


def measure(
    study: AnyStudy,
    *,
    records: Path | str = RECORDS,
    features: Path | str | Store = FEATURES,
    chosen: ProbeSelection = ALL_PROBES,
    workers: int = CORES,
    backend: str = "loky",
    shard: tuple[int, int] = (0, 1),
    keep: Callable[[Cell], bool] = lambda cell: True,
) -> Records:
    """Measure the probes that are not stored yet, of the study's cells whose features are there."""
    cache, loaded = Records(records), load_study(study)
    asked = probe_query(loaded, as_store(features), chosen, keep)
    if not asked.keys():
        reasons = {*asked.absent.values(), f"the study has no cell of the tier {', '.join(chosen.tiers)}."}
        raise StudyError(sorted(reasons)[0])
    cache.save(asked, loaded.name + PROBES)
    where = features if isinstance(features, Store) else Path(features)
    fill(asked, where, cache, Workers(workers, backend), Shard(*shard))
    return cache


def probe(
    features: Where,
    *,
    shots: int | Integral | Iterable[int] = (1, 2, 4, 8, 16),
    seeds: int | Integral | Iterable[int] = 5,
    tiers: str | Sequence[str] = (),
    folder: Path | str = FEATURES,
    workers: int = CORES,
) -> "pa.Table":
    """Measure what the theory predicts on features in memory or stored ones, one row a cell and quantity.

    Arguments are those of `compare`. A quantity of the whole stratum has shots 0 and seed -1, one of all draws seed -1.
    The probes see test labels: they explain a result, and choose nothing.

    Examples
    --------
    >>> import kshot
    >>> table = kshot.probe("tuxpaint/lite0/photo", shots=[2], seeds=2, workers=1)
    >>> "optimum.mean James–Stein" in table["quantity"].to_pylist()
    True
    """
    strata, store = gather_features(features, folder, (tiers,) if isinstance(tiers, str) else tiers)
    study = Study("probe", _grids("probe", strata, shots, seeds))
    chosen, temporary = ProbeSelection(tiers=sorted({tier for *_, tier in strata})), TemporaryFolder()
    cache = measure(study, records=temporary.path, features=store, chosen=chosen, workers=workers)
    return probe_table(cache, study.name)


def judge(
    heads: Heads,
    study: AnyStudy,
    *,
    on: Where = (),
    records: Path | str = RECORDS,
    features: Path | str = FEATURES,
    workers: int = CORES,
    backend: str = "loky",
    **renamed: Any,
) -> Judgement:
    """Run methods beside zero-shot, the oracle ratio, the LOO blend, CLAP and LP++, and answer the five questions of
    each.

    Parameters
    ----------
    heads : heads
        One or several, as `compare` takes them.
    study, on, records, features, workers, backend
        As in `run`.
    """
    refuse_renamed("judge", renamed)
    strata, store = gather_features(on, features)
    specs = method_specs(heads)
    judged = judged_study(load_study(study).on_features(strata), specs)
    plan = Plan(store, Records(records), Workers(workers, backend))
    oracles = {spec.name: oracle for spec in specs if (oracle := knob_oracle(spec))}
    results = plan.results(judged, list(oracles.values()))
    asked = query(judged.with_methods(list(oracles.values())), as_store(store))
    tables, words = [], []
    for spec in specs:
        knob = None
        if isinstance(method := made(spec), Knob):
            values = oracle_accuracies(asked, plan.records, spec)
            by_cell = {tuple(getattr(cell, name) for name in CELL): 100 * value for cell, value in values.items()}
            knob = OwnKnob(method.knob_name(), by_cell)
        table, answers = five_questions(results.panel, spec.name, knob)
        if len(specs) > 1:
            table = replace(table, key=f"{table.key}-{_slug(spec.name)}")
            answers = [f"{results.panel.titles[spec.name]}: {answer}" for answer in answers]
        tables.append(table)
        words += answers
    return Judgement(results, tuple(tables), tuple(words), tuple(leak_words(results.leaks)))


def judged_study(study: Study, specs: Sequence[MethodSpec]) -> Study:
    """The same cells with these methods and their companions only."""
    names = {spec.name for spec in specs}
    known = [MethodSpec(name, name) for name in COMPANIONS if name in registry.names() and name not in names]
    grids = tuple(replace(grid, methods=(*known, *specs)) for grid in study.grids)
    return replace(study, name=f"{study.name}-judge", grids=grids)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")
