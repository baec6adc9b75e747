"""What a study found: its records as a value that answers questions and writes no file unless told to."""

import json
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kshot.bench.frames import frame_table
from kshot.bench.joined import joined
from kshot.bench.probes import probe_table
from kshot.bench.records import Records, SavedQuery
from kshot.bench.status import run_status
from kshot.bench.study import MethodSpec
from kshot.data import catalog
from kshot.data.store import Store, as_store
from kshot.errors import KshotError, StudyError, need, unknown
from kshot.methods import registry
from kshot.methods.parameters import parameter_words, summary
from kshot.report.context import Context, Gate, MethodText, Probed, read_probes
from kshot.report.notes import LEAKY
from kshot.report.slices import focus, primary
from kshot.report.table import Table
from kshot.report.tables import TABLES, find_table, make_table
from kshot.stats.bootstrap import Estimate
from kshot.stats.leaderboard import counting, paired
from kshot.stats.metrics import ACCURACY, METRICS, OF_MISSING_SHOTS, Metric, find_metric
from kshot.stats.panel import CELL, Panel, panel
from kshot.stats.selected import curves
from kshot.types import BALANCED

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure

Names = str | int | Integral | Sequence[str | int]
AXES = ("dataset", "backbone", "tier", "shots", "seed", "profile", "method")


@dataclass(frozen=True)
class Report:
    """The page, all files written with it, and for the figures that are missing the reason."""

    page: Path
    files: tuple[Path, ...]
    missing: dict[str, str]


class TemporaryFolder:
    """A folder that is removed when nobody holds this object any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kshot-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, repr=False)
class Results:
    """The records of one study, or the part of them that `where` chose."""

    records: "pa.Table"
    saved: SavedQuery | None = None
    cache: Records | None = None
    features: Path | Store = Path("features")
    precision: "Results | None" = None
    base: "Results | None" = None
    corrected: bool = False
    headroom: bool = False
    chosen: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    metric: Metric = ACCURACY
    rounding: float = 0.0
    temporary: "TemporaryFolder | None" = None

    @property
    def name(self) -> str:
        """The study's."""
        return self.panel.origin.study

    @staticmethod
    def from_frame(frame: Any, name: str, rounding: float = 0.0) -> "Results":
        """Other people's results as kshot's own: a data frame, or list of dicts, with the columns dataset, backbone,
        tier, shots, seed, method and accuracy (per cent, or shares of 1), one row a record; marked as imported.

        `rounding` is the step of printed accuracies in percentage points. Columns that may be there besides: title,
        sees, profile, n_test.

        >>> from kshot.results import Results
        >>> cell = {"dataset": "Pets", "backbone": "RN50", "tier": "dataset", "shots": 1, "method": "mine"}
        >>> rows = [cell | {"seed": seed, "accuracy": 85.0 + seed} for seed in range(3)]
        >>> Results.from_frame(rows, "theirs").records["accuracy"].to_pylist()
        [0.85, 0.86, 0.87]
        """
        return Results(frame_table(frame, name), rounding=rounding)

    def by(self, metric: str | Metric) -> "Results":
        """The same records measured by another metric: one of `kshot.stats.metrics`, or your own (`kshot.extend`)."""
        return replace(self, metric=find_metric(metric))

    def where(
        self,
        *,
        dataset: Names = (),
        backbone: Names = (),
        tier: Names = (),
        shots: Names = (),
        seed: Names = (),
        profile: Names = (),
        method: Names = (),
    ) -> "Results":
        """The records that bear one of these names on every axis."""
        given = zip(AXES, (dataset, backbone, tier, shots, seed, profile, method), strict=True)
        lists = {axis: _as_tuple(names) for axis, names in given}
        wanted = {axis: names for axis, names in lists.items() if names}
        return replace(self, records=_select(self.records, wanted), chosen={**self.chosen, **wanted})

    def beside(self, other: "Results | None") -> "Results":
        """These records beside the same cells in another precision, or without augmented views."""
        if other is None:
            return self
        if other.panel.origin.dtype != self.panel.origin.dtype:
            return replace(self, precision=other)
        return replace(self, base=other)

    def to_arrow(self) -> "pa.Table":
        return self.records

    def to_pandas(self) -> "pd.DataFrame":
        need("pandas", "frames")
        return self.records.to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        return need("polars", "frames").from_arrow(self.records)

    def leaderboard(self) -> Table:
        """Mean of the metric by shots, and how far each method is behind the leader."""
        return self.table("leaderboard")

    def paired(self, method: str, baseline: str, cells: Literal["leaderboard", "all"] = "leaderboard") -> Estimate:
        """Method minus baseline (of accuracies in percentage points), over the cells of the primary tier where both
        exist: those that the leaderboard counts, or all."""
        if cells not in ("leaderboard", "all"):
            raise StudyError(unknown("cells", str(cells), ("leaderboard", "all"), "Give one of them."))
        shown = primary(self.measured)
        for name in (method, baseline):
            if name not in shown.methods:
                raise StudyError(unknown("method", name, shown.methods, "These are in the records."))
        if cells == "leaderboard":
            shown = counting(shown.where(shown.present_at_every_shot_count()))
        shots = np.unique(shown.with_all([method, baseline]).shots).tolist()
        return replace(paired(shown, method, baseline), over=f"K = {', '.join(map(str, shots))}")

    def curve(self, method: str) -> "pa.Table":
        """The accuracy of every value of a method's ratio, as seen by the evidence that chooses, one row a cell and
        value; of `loo_lambda` and the like the method is `loo_blend`."""
        return curves(self.panel, method)

    def table(self, key: str) -> Table:
        """One table of the report, made now; the keys are in `kshot.report.tables.TABLES`."""
        if key not in self._made:
            entry, context = find_table(key), self._context
            if entry.answers:
                context = replace(context, measured=self.by_metric)
            if entry.headroom:
                context = replace(context, headroom=self._headroom)
            self._made[key] = make_table(key, self.measured if entry.any_metric else self.panel, context)
        return self._made[key]

    def verdict(self) -> list[str]:
        """What the ratio is worth here, and which head to use instead, in sentences with their numbers."""
        from kshot.report.verdict import verdict

        return verdict(self.panel, self._context.own)

    def tables(self) -> list[Table]:
        """All of them, without the optional ones that these records cannot fill."""
        return [table for key, entry in TABLES.items() if (table := self.table(key)).rows or not entry.optional]

    def plot(self, name: str, backbone: str = "") -> "Figure":
        """One figure of the report, such as `accuracy_by_shots`, as a matplotlib figure; of the first backbone unless
        one is given."""
        from kshot.report.figures import OF_FEATURES, plot

        return plot(self.panel, self.page_context() if name in OF_FEATURES else self._context, name, backbone)

    def report(
        self, folder: Path | str | None = None, lead: tuple[Sequence[Table], Sequence[str]] | None = None
    ) -> Report:
        """Write every table, the figures and a page that opens from disk; `lead` puts tables and words in front."""
        from kshot.report.figures import write_figures
        from kshot.report.write import write_report

        if folder is None and (self.temporary or self.cache is None):
            raise StudyError("these records lie in no folder that stays. Give one: report('report').")
        kept = self.cache.folder if self.cache else Path()
        target, context = Path(folder or kept / "reports" / self.name), self.page_context()
        first, words = lead or ((), None)
        tables = [*first, *self.tables(), *self.published()]
        drawn, missing = write_figures(self.panel, context, target / "figures")
        page, *others = write_report(self.panel, tables, target, context, words, drawn)
        return Report(page, (page, *others, *drawn), missing)

    def published(self) -> list[Table]:
        """The paper's numbers by arm beside those of these records and of the arms beside them, and one line for each
        that the paper prints with an interval; nothing where the records hold none of the paper's datasets, or where
        the matrix stands beside them, whose page has it all."""
        from kshot.paper.claims import paper_claims, paper_rules
        from kshot.paper.folders import MATRIX_STUDY, compare, gather_records
        from kshot.paper.summary import arms_table, lines_table, places_table

        rules = paper_rules().paper
        of_paper = set(self.panel.names("dataset")) & set(rules["datasets"])
        with_matrix = self.cache is not None and self.cache.has(MATRIX_STUDY)
        if self.chosen or not of_paper or (with_matrix and self.name in rules["studies"] and self.name != MATRIX_STUDY):
            return []
        judged = compare(gather_records(self.cache, self.records), paper_claims())
        with_interval = [line for line in judged.lines if line.claim.low is not None]
        return [arms_table(judged), places_table(judged), lines_table(judged, with_interval)]

    @cached_property
    def panel(self) -> Panel:
        """One row per cell, one column per method: what every comparison is made of."""
        found = panel(self.records, _listed(self.chosen))
        return replace(found, titles=found.titles | {name: found.titles[name] + LEAKY for name in self.leaks})

    @cached_property
    def measured(self) -> Panel:
        """The panel by the metric that was asked for."""
        if self.metric is ACCURACY:
            return self.panel
        found = self._panels([self.metric])
        if not found:
            raise StudyError(
                f"these records keep no answers, so that {self.metric.title} is unknown. Compute them again with "
                "answers = true in the study."
            )
        return found[self.metric.key]

    @cached_property
    def by_metric(self) -> dict[str, Panel]:
        """The panel by every metric that is known of some record; empty where no answers are kept."""
        others = [metric for metric in (METRICS | OF_MISSING_SHOTS).values() if metric is not ACCURACY]
        panels = self._panels(others)
        return {ACCURACY.key: self.panel, **panels} if panels else {}

    def _panels(self, metrics: Sequence[Metric]) -> dict[str, Panel]:
        """The panel by those of the metrics that are known of some record."""
        functions = {metric.key: metric.value for metric in metrics}
        if self.cache is None:
            return {}
        values = self.cache.answers(self.records, functions)
        known = [metric for metric in metrics if np.isfinite(values[metric.key]).any()]
        return {metric.key: self.panel.by_metric(metric, values[metric.key]) for metric in known}

    @cached_property
    def _made(self) -> dict[str, Table]:
        return {}

    @cached_property
    def missing(self) -> list[tuple[Any, ...]]:
        """(dataset, backbone, tier, shots, seed, profile, method, reason) of what has no number: the reason why it is
        undefined or failed, or that it was not computed."""
        import pyarrow.compute as pc

        columns = [*CELL, "method", "reason"]
        bad = self.records.filter(pc.field("status") != "ok")
        lost = self.saved.table.to_pylist() if self.saved else []
        there = set(self.records["key"].to_pylist())
        rows = [(*(row[name] for name in columns[:-1]), "not computed") for row in lost if self._lacks(row, there)]
        return [*zip(*(bad[name].to_pylist() for name in columns), strict=True), *rows]

    def _lacks(self, row: Mapping[str, Any], there: set[str]) -> bool:
        chosen = all(row[axis] in names for axis, names in self.chosen.items())
        return chosen and bool(row["key"]) and row["key"] not in there

    def failures(self) -> list[str]:
        """Which methods failed, how often and why, which leaderboards show as a dash."""
        reasons: dict[str, list[str]] = {}
        columns = (self.records[name].to_pylist() for name in ("method", "status", "reason"))
        for method, status, reason in zip(*columns, strict=True):
            if status == "failed":
                reasons.setdefault(method, []).append(reason)
        return [f"{method} failed in {len(why)} cells: {why[0]}" for method, why in reasons.items()]

    @cached_property
    def unfinished(self) -> str:
        """What a reader of an unfinished run must know; empty where the run is complete or unknown."""
        if self.saved is None or self.cache is None:
            return ""
        state = run_status(self.cache, self.saved)
        if not state.missing:
            return ""
        begun, pairs = state.pairs
        return (
            f"UNFINISHED, {state.missing:,} of {state.total:,} records to compute, {begun} of {pairs} pairs of dataset "
            "and backbone begun: figures may change, datasets may be absent. `kshot run` computes the rest."
        )

    @cached_property
    def leaks(self) -> dict[str, tuple[str, ...]]:
        """What the leak check found in heads that are not part of kshot, by method."""
        checked = self.saved.checked if self.saved else {}
        there = set(self.records["method"].to_pylist())
        return {name: tuple(one.leaks) for name, one in checked.items() if one.leaks and name in there}

    @cached_property
    def _context(self) -> Context:
        probed = read_probes(probe_table(self.cache, self.name)) if self.cache else Probed()
        tier = focus(self.panel).tier
        measured_headroom = probed.values.get("headroom.headroom", {})
        return Context(
            own=[name for name, spec in self._specs.items() if spec.use not in registry.BUILTIN],
            probed=probed,
            headroom={key[:2]: value for key, value in measured_headroom.items() if key[2] == tier},
            gates={entry.name: Gate(entry.split, entry.band) for entry in catalog.datasets().values()},
            band_backbone=catalog.BAND_BACKBONE,
            band_tier=catalog.BAND_TIER,
            other_precision=self.precision and self.precision.panel,
            without_views=self.base and self.base.panel,
            corrected=self.corrected,
            unfinished=self.unfinished,
            leaks=self.leaks,
        )

    @cached_property
    def _specs(self) -> dict[str, MethodSpec]:
        return self.saved.study.methods() if self.saved else {}

    @cached_property
    def _headroom(self) -> Mapping[tuple[str, str], float]:
        """What Theorem 2 leaves above the blend path: as probed, else computed where that was asked for."""
        from kshot.theory.probes.ratio import stored_headroom

        if not self.headroom or self._context.headroom:
            return self._context.headroom
        store = as_store(self.features)
        check_features(self.records, store)
        strata = sorted(set(primary(self.panel).cell_keys(("dataset", "backbone"))))
        return stored_headroom(store, strata, focus(self.panel).tier)

    def page_context(self) -> Context:
        """What the page alone shows: descriptions of the methods, and the geometry of every stratum whose features
        are stored and still those of the records."""
        from kshot.theory.probes.sketch import sketches

        features = self.features
        # A sketch shows the means of every class's shots.
        balanced = self.panel.where(self.panel.profile == BALANCED)
        strata = set(balanced.cell_keys(("dataset", "backbone", "tier")))
        drawn, absent = [], f"no features in {features}"
        try:
            check_features(self.records, as_store(features))
            shots, seeds = (sorted(set(self.records[name].to_pylist())) for name in ("shots", "seed"))
            given = self.saved.study.supports_of if self.saved else lambda dataset: {}
            drawn = list(sketches(as_store(features), strata, shots, seeds[0], given))
        except KshotError as error:
            absent = f"the features in {features} cannot be used: {error}"
        return replace(
            self._context,
            method_texts=_method_texts(self._specs),
            sketches=drawn,
            sketches_absent=absent,
            measured={key: found for key, found in self.by_metric.items() if key in METRICS},
            headroom=self._headroom,
        )

    def __repr__(self) -> str:
        part = f", only {_listed(self.chosen)}" if self.chosen else ""
        where = f" in {self.cache.folder}" if self.cache and not self.temporary else ""
        return f"{self.records.num_rows} records{where}{part}\n{self.leaderboard()!r}"

    def _repr_html_(self) -> str:
        return self.leaderboard().html()


def load_records(
    folder: Path | str = "records",
    study: str = "",
    *,
    features: Path | str | Store = "features",
    corrected: bool = False,
    headroom: bool = False,
) -> Results:
    """Read the records that a study asked for last.

    Parameters
    ----------
    folder : path
        What `run` or `kshot run` filled.
    study : name
        Needed where several studies share the folder.
    features : path
        Folder of the features that the records were computed on; only tables that look at them need it.
    corrected : bool
        Add intervals that hold simultaneously.
    headroom : bool
        Compute from the features what the theory leaves above the blend path.
    """
    cache = Records(folder)
    names = cache.names()
    if not study and len(names) > 1:
        raise StudyError(f"{folder} holds records of {', '.join(names)}. Name one: load_records({str(folder)!r}, …).")
    saved = cache.saved(study or (names[0] if names else ""))
    where = features if isinstance(features, Store) else Path(features)
    table = joined(saved, cache)
    if not table.num_rows:
        raise StudyError(f"{folder} holds no record of {saved.study.name} yet. Run `kshot run`, or see `kshot status`.")
    return Results(table, saved, cache, where, corrected=corrected, headroom=headroom)


def check_features(records: "pa.Table", store: Store) -> None:
    """Refuse a store that holds other features than the records were computed on."""
    rows = {name: records[name].to_pylist() for name in ("dataset", "backbone", "features")}
    told = {row for row in zip(*rows.values(), strict=True) if row[-1]}
    hashes = store.hashes({row[:2] for row in told})
    for dataset, backbone, text in sorted(told):
        for part, digest in dict[str, str](json.loads(text)).items():
            if not hashes.get(f"{dataset}/{backbone}/{part}", digest).startswith(digest):
                raise StudyError(f"{dataset}/{backbone}/{part} in {store.root} is not what the records were made of.")


def _as_tuple(names: Names) -> tuple[str | int, ...]:
    if isinstance(names, str):
        return (names,)
    return (int(names),) if isinstance(names, int | Integral) else tuple(names)


def _select(records: "pa.Table", wanted: Mapping[str, Sequence[str | int]]) -> "pa.Table":
    """The rows that bear one of the wanted names on every axis."""
    import pyarrow.compute as pc

    table = records
    for axis, names in wanted.items():
        known = records[axis].unique().to_pylist()
        for name in names:
            if name not in known:
                raise StudyError(unknown(axis, str(name), map(str, known), "These are in the records."))
        table = table.filter(pc.field(axis).isin(list(names)))
    if not table.num_rows:
        raise StudyError(f"no record has all of this: {_listed(wanted)}.")
    return table


def _listed(wanted: Mapping[str, Sequence[str | int]]) -> str:
    """`dataset cifar10; shots 2, 4`."""
    return "; ".join(f"{axis} {', '.join(map(str, names))}" for axis, names in wanted.items())


def _method_texts(specs: Mapping[str, MethodSpec]) -> dict[str, MethodText]:
    """Of the methods that come with kshot; no other code is run for a page."""
    known = {name: spec for name, spec in specs.items() if spec.use in registry.BUILTIN}
    heads = {name: registry.create(spec.use, **spec.params) for name, spec in known.items()}
    return {
        name: MethodText(
            head.info.paper, summary(type(head)), parameter_words(type(head)), f"kshot.{type(head).__name__}"
        )
        for name, head in heads.items()
    }
