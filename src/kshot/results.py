"""What a study found: its records as a value that answers questions and writes no file unless told to."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kshot.bench.records import Records, load_table, metric_values
from kshot.bench.status import count_done, recorded_pairs
from kshot.bench.study import Study
from kshot.bench.work import check_stored
from kshot.data import catalog
from kshot.data.store import Store, as_store
from kshot.errors import KshotError, StudyError, need, unknown
from kshot.methods import registry
from kshot.methods.parameters import parameter_words, summary
from kshot.report.context import Context, Gate, MethodText, Probed, read_probes
from kshot.report.slices import focus, primary
from kshot.report.table import Table
from kshot.report.tables import TABLES, find_table, make_table
from kshot.stats.bootstrap import Estimate
from kshot.stats.leaderboard import paired
from kshot.stats.metrics import ACCURACY, METRICS, OF_MISSING_SHOTS, Metric, find_metric
from kshot.stats.panel import Panel, panel
from kshot.theory.probes.stored import ProbeFolder
from kshot.types import BALANCED

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure

Names = str | int | Integral | Sequence[str | int]
AXES = ("dataset", "backbone", "tier", "shots", "profile", "method")


@dataclass(frozen=True)
class Report:
    """The page, all files written with it, and for the figures that are missing the reason."""

    page: Path
    files: tuple[Path, ...]
    missing: dict[str, str]


class TemporaryFolder:
    """A folder that is removed when nobody holds this object any more, and at the latest with the process that made
    it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kshot-"))
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, owner: int) -> None:
    # Forked workers have the object, too.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, repr=False)
class Results:
    """The records of one study, or the part of them that `where` chose."""

    records: "pa.Table"
    folder: Path
    features: Path | Store
    precision: Path | None = None
    base: Path | None = None
    corrected: bool = False
    headroom: bool = False
    chosen: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    metric: Metric = ACCURACY
    temporary: "TemporaryFolder | None" = None

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
        profile: Names = (),
        method: Names = (),
    ) -> "Results":
        """The records that bear one of these names on every axis."""
        asked = zip(AXES, (dataset, backbone, tier, shots, profile, method), strict=True)
        lists = {axis: _as_tuple(names) for axis, names in asked}
        wanted = {axis: names for axis, names in lists.items() if names}
        return replace(self, records=_select(self.records, wanted), chosen={**self.chosen, **wanted})

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

    def paired(self, method: str, baseline: str) -> Estimate:
        """Method minus baseline (of accuracies in percentage points), over the cells of the primary tier where both
        exist."""
        shown = primary(self.measured)
        for name in (method, baseline):
            if name not in shown.methods:
                raise StudyError(unknown("method", name, shown.methods, "These are in the records."))
        return paired(shown, method, baseline)

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

        if folder is None and self.temporary:
            raise StudyError("these records lie in a folder that is removed with them. Give one: report('report').")
        target, context = Path(folder or self.folder / "report"), self.page_context()
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
        from kshot.paper.folders import compare_folders, is_arm
        from kshot.paper.summary import arms_table, lines_table

        of_paper = set(self.panel.names("dataset")) & set(paper_rules().paper["datasets"])
        if self.chosen or not of_paper or is_arm(self.folder):
            return []
        judged = compare_folders(self.folder, paper_claims())
        with_interval = [line for line in judged.lines if line.claim.low is not None]
        return [arms_table(judged), lines_table(judged, with_interval)]

    @cached_property
    def panel(self) -> Panel:
        """One row per cell, one column per method: what every comparison is made of."""
        return panel(self.records, _listed(self.chosen))

    @cached_property
    def measured(self) -> Panel:
        """The panel by the metric that was asked for."""
        if self.metric is ACCURACY:
            return self.panel
        found = self._panels([self.metric])
        if not found:
            raise StudyError(
                f"{self.folder} keeps no answers, so that {self.metric.title} is unknown: it was filled by an older "
                "version or with answers = false. Type `kshot run` with another --records."
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
        values = metric_values(Records(self.folder), self.records, functions)
        known = [metric for metric in metrics if np.isfinite(values[metric.key]).any()]
        return {metric.key: self.panel.by_metric(metric, values[metric.key]) for metric in known}

    @cached_property
    def _made(self) -> dict[str, Table]:
        return {}

    @cached_property
    def unfinished(self) -> str:
        """What a reader of an unfinished run must know; empty where the run is complete or unknown."""
        try:
            done, wanted = count_done(self.folder)
        except KshotError:
            return ""
        if done >= wanted:
            return ""
        here, pairs = recorded_pairs(self.folder)
        return (
            f"UNFINISHED, {wanted - done:,} of {wanted:,} cells to compute, {here} of {pairs} pairs of dataset and "
            "backbone begun: figures may change, datasets may be absent. `kshot run` computes the rest."
        )

    @cached_property
    def _context(self) -> Context:
        probes = ProbeFolder(self.folder)
        probed = read_probes(probes.load()) if probes.folder.is_dir() else Probed()
        tier = focus(self.panel).tier
        measured_headroom = probed.values.get("headroom.headroom", {})
        precision, base = (
            None if folder is None else panel(load_table(folder)) for folder in (self.precision, self.base)
        )
        return Context(
            own=_own_methods(self.folder),
            probed=probed,
            headroom={key[:2]: value for key, value in measured_headroom.items() if key[2] == tier},
            gates={entry.name: Gate(entry.split, entry.band) for entry in catalog.datasets().values()},
            band_backbone=catalog.BAND_BACKBONE,
            band_tier=catalog.BAND_TIER,
            other_precision=precision,
            without_views=base,
            corrected=self.corrected,
            unfinished=self.unfinished,
        )

    @cached_property
    def _headroom(self) -> Mapping[tuple[str, str], float]:
        """What Theorem 2 leaves above the blend path: as probed, else computed where that was asked for."""
        from kshot.theory.probes.ratio import stored_headroom

        if not self.headroom or self._context.headroom:
            return self._context.headroom
        store = as_store(self.features)
        check_stored(Records(self.folder), store)
        strata = sorted(set(primary(self.panel).cell_keys(("dataset", "backbone"))))
        return stored_headroom(store, strata, focus(self.panel).tier)

    def page_context(self) -> Context:
        """What the page alone shows: descriptions of the methods, and the geometry of every stratum whose features
        are stored and still those of the records."""
        from kshot.theory.probes.sketch import sketches

        folder, features = Records(self.folder), self.features
        # A sketch shows the means of every class's shots.
        balanced = self.panel.where(self.panel.profile == BALANCED)
        strata = set(balanced.cell_keys(("dataset", "backbone", "tier")))
        drawn, absent = [], f"no features in {features}"
        try:
            check_stored(folder, as_store(features))
            drawn = list(sketches(folder.study(), as_store(features), strata))
        except KshotError as error:
            absent = f"the features in {features} cannot be used: {error}"
        return replace(
            self._context,
            method_texts=_method_texts(folder.study()),
            sketches=drawn,
            sketches_absent=absent,
            measured={key: found for key, found in self.by_metric.items() if key in METRICS},
            headroom=self._headroom,
        )

    def __repr__(self) -> str:
        part = f", only {_listed(self.chosen)}" if self.chosen else ""
        return f"{self.records.num_rows} records in {self.folder}{part}\n{self.leaderboard()!r}"

    def _repr_html_(self) -> str:
        return self.leaderboard().html()


def load_records(
    folder: Path | str,
    *,
    features: Path | str | Store = "features",
    precision: Path | str | None = None,
    base: Path | str | None = None,
    corrected: bool = False,
    headroom: bool = False,
) -> Results:
    """Read a records folder.

    Parameters
    ----------
    folder : path
        What `run` or `kshot run` filled.
    features : path
        Folder of the features that the records were computed on; only tables that look at them need it.
    precision : path
        Records of the same cells in another dtype, for the table that compares the two.
    base : path
        Records of the same cells without augmented views, for the table that tells what these changed.
    corrected : bool
        Add intervals that hold simultaneously.
    headroom : bool
        Compute from the features what the theory leaves above the blend path.
    """
    other, plain = (None if given is None else Path(given) for given in (precision, base))
    where = features if isinstance(features, Store) else Path(features)
    return Results(load_table(folder), Path(folder), where, other, plain, corrected, headroom)


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


def _own_methods(folder: Path) -> list[str]:
    """The methods of a study that do not come with kshot, as the records name them."""
    try:
        study = Records(folder).study()
    except KshotError:
        return []
    return [name for name, spec in study.methods().items() if spec.use not in registry.BUILTIN]


def _method_texts(study: Study) -> dict[str, MethodText]:
    """Of the methods that come with kshot; no other code is run for a page."""
    known = {name: spec for name, spec in study.methods().items() if spec.use in registry.BUILTIN}
    heads = {name: registry.create(spec.use, **spec.params) for name, spec in known.items()}
    return {
        name: MethodText(
            head.info.paper, summary(type(head)), parameter_words(type(head)), f"kshot.{type(head).__name__}"
        )
        for name, head in heads.items()
    }
