"""What a study found: its records as a value that answers questions, without a file being written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kshot.bench.records import Records, load_table, metric_values
from kshot.bench.status import count_done
from kshot.bench.study import Study
from kshot.bench.work import check_stored
from kshot.data import catalog
from kshot.data.store import Store
from kshot.errors import KshotError, StudyError, unknown
from kshot.methods import registry
from kshot.methods.docstrings import parameter_words, summary
from kshot.report.context import Context, Described, Gate
from kshot.report.focus import focus, primary
from kshot.report.probed import Probed, read_probes
from kshot.report.table import Table
from kshot.report.tables import OF_ANY_METRIC, TABLES, make_table
from kshot.stats.bootstrap import Estimate
from kshot.stats.leaderboard import paired
from kshot.stats.metrics import ACCURACY, METRICS, OF_MISSING_SHOTS, Metric, find_metric
from kshot.stats.panel import Panel, panel
from kshot.stats.selection import described, select
from kshot.theory.probes.stored import ProbeFolder
from kshot.types import BALANCED, HALVES, PROFILES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Names = str | int | Sequence[str | int]
NEEDS_HEADROOM, NEEDS_METRICS, NEEDS_PROFILES = "strata", "metrics", "profiles"
NEEDS_MISSING_SHOTS, NEEDS_HALVES = "unseen", "base_to_new"


@dataclass(frozen=True)
class Options:
    """What tables and reports are to know or to add beside the records."""

    features: Path = Path("features")
    precision: Path | None = None
    base: Path | None = None
    corrected: bool = False
    headroom: bool = False


@dataclass(frozen=True)
class Report:
    """The page, all files written with it, and for the figures that are missing the reason."""

    page: Path
    files: tuple[Path, ...]
    missing: dict[str, str]


@dataclass(frozen=True, repr=False)
class Results:
    """The records of one study, or the part of them that `where` chose."""

    records: "pa.Table"
    folder: Path
    options: Options
    chosen: Mapping[str, tuple[str | int, ...]]
    metric: Metric = ACCURACY

    def by(self, metric: str | Metric) -> "Results":
        """The same records judged by another metric: one of `kshot.stats.metrics`, or of your own (`kshot.extend`)."""
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
        asked = {
            "dataset": dataset,
            "backbone": backbone,
            "tier": tier,
            "shots": shots,
            "profile": profile,
            "method": method,
        }
        wanted = {axis: _tuple(names) for axis, names in asked.items() if _tuple(names)}
        return replace(self, records=select(self.records, wanted), chosen={**self.chosen, **wanted})

    def to_arrow(self) -> "pa.Table":
        return self.records

    def to_pandas(self) -> "pd.DataFrame":
        from kshot.errors import need

        need("pandas", "frames")
        return self.records.to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        from kshot.errors import need

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
            context = {
                NEEDS_HEADROOM: "_with_headroom",
                NEEDS_METRICS: "_with_metrics",
                NEEDS_MISSING_SHOTS: "_with_missing_shots",
            }.get(key, "_context")
            shown = self.measured if key in OF_ANY_METRIC else self.panel
            self._made[key] = make_table(key, shown, getattr(self, context))
        return self._made[key]

    def verdict(self) -> list[str]:
        """What the ratio is worth here, and which head to use instead, in sentences with their numbers."""
        from kshot.report.verdict import verdict

        return verdict(self.panel, self._context.own)

    def tables(self) -> list[Table]:
        """All of them; metrics where answers are kept, profiles where the study has them."""
        profiles = set(self.panel.profile.tolist())
        there = {
            NEEDS_METRICS: bool(self._with_metrics.measured),
            NEEDS_PROFILES: len(profiles & PROFILES.keys()) > 1,
            NEEDS_MISSING_SHOTS: bool(self._with_missing_shots.measured),
            NEEDS_HALVES: profiles >= HALVES.keys(),
        }
        return [self.table(key) for key in TABLES if there.get(key, True)]

    def report(self, folder: Path | str | None = None, lead: tuple[Table, Sequence[str]] | None = None) -> Report:
        """Write every table, the figures and a page that opens from disk; `lead` puts a table and words in front."""
        from kshot.report.figures import write_figures
        from kshot.report.write import write_report

        target, context = Path(folder or self.folder / "report"), self._of_page
        first, words = ([lead[0]], lead[1]) if lead else ([], None)
        tables = [*first, *self.tables(), *self.published()]
        page, *others = write_report(self.panel, tables, target, context, words)
        drawn, missing = write_figures(self.panel, context, target / "figures")
        return Report(page, (page, *others, *drawn), missing)

    def published(self) -> list[Table]:
        """The paper's numbers by arm beside those of these records and of the arms beside them, and one line for each
        that the paper prints with an interval; nothing where the records hold none of the paper's datasets, or where
        the matrix stands beside them, whose page has it all."""
        from kshot.paper.claims import paper_claims
        from kshot.paper.folders import compare_folders, is_arm
        from kshot.paper.rules import paper_rules
        from kshot.paper.show import arms_table, lines_table

        of_paper = set(self.panel.dataset.tolist()) & set(paper_rules().paper["datasets"])
        if self.chosen or not of_paper or is_arm(self.folder):
            return []
        lines, simulated = compare_folders(self.folder, paper_claims())
        with_interval = [line for line in lines if line.claim.low is not None]
        return [arms_table(lines, simulated), lines_table(with_interval, simulated)]

    @cached_property
    def panel(self) -> Panel:
        """One row per cell, one column per method: what every comparison is made of."""
        return panel(self.records, described(self.chosen))

    @cached_property
    def measured(self) -> Panel:
        """The panel by the metric that was asked for."""
        if self.metric is ACCURACY:
            return self.panel
        values = metric_values(Records(self.folder), self.records, {self.metric.key: self.metric.value})
        if not np.isfinite(values[self.metric.key]).any():
            raise StudyError(
                f"{self.folder} keeps no answers, so that {self.metric.title} is unknown: it was filled by an older "
                "version or with answers = false. Type `kshot run` with another --records."
            )
        return self.panel.by_metric(self.metric, values[self.metric.key])

    @cached_property
    def _with_metrics(self) -> Context:
        """Every metric, where answers are kept."""
        panels = self._measured_by({key: metric for key, metric in METRICS.items() if metric is not ACCURACY})
        return replace(self._context, measured={ACCURACY.key: self.panel, **panels} if panels else {})

    @cached_property
    def _with_missing_shots(self) -> Context:
        """Accuracy on classes with and without shots, where some have none and answers are kept."""
        missing = "missing" in set(self.panel.profile.tolist())
        return replace(self._context, measured=self._measured_by(OF_MISSING_SHOTS) if missing else {})

    def _measured_by(self, metrics: Mapping[str, Metric]) -> dict[str, Panel]:
        """Nothing where no record tells the first of them."""
        functions = {key: metric.value for key, metric in metrics.items()}
        values = metric_values(Records(self.folder), self.records, functions)
        if not np.isfinite(values[next(iter(functions))]).any():
            return {}
        return {key: self.panel.by_metric(metrics[key], found) for key, found in values.items()}

    @cached_property
    def _made(self) -> dict[str, Table]:
        return {}

    @property
    def unfinished(self) -> str:
        return self._context.unfinished

    @cached_property
    def _context(self) -> Context:
        try:
            done, wanted = count_done(self.folder)
        except KshotError:
            done = wanted = 0
        other, base = self.options.precision, self.options.base
        probes = ProbeFolder(self.folder)
        probed = read_probes(probes.load()) if probes.folder.is_dir() else Probed()
        return Context(
            own=_own(self.folder),
            probed=probed,
            headroom={
                key[:2]: value
                for key, value in probed.values.get("headroom.headroom", {}).items()
                if key[2] == focus(self.panel).tier
            },
            gates={entry.name: Gate(entry.split, entry.band) for entry in catalog.datasets().values()},
            band_backbone=catalog.BAND_BACKBONE,
            band_tier=catalog.BAND_TIER,
            other_precision=None if other is None else panel(load_table(other)),
            without_views=None if base is None else panel(load_table(base)),
            corrected=self.options.corrected,
            cells_done=done,
            cells_wanted=wanted,
        )

    @cached_property
    def _with_headroom(self) -> Context:
        """What Theorem 2 leaves above the blend path, where it was asked for and the features are stored."""
        from kshot.theory.probes.headroom import stored_headroom

        if not self.options.headroom or self._context.headroom:
            return self._context
        store, shown = Store(self.options.features), primary(self.panel)
        check_stored(Records(self.folder), store)
        strata = sorted(set(zip(shown.dataset.tolist(), shown.backbone.tolist(), strict=True)))
        return replace(self._context, headroom=stored_headroom(store, strata, focus(self.panel).tier))

    @cached_property
    def _of_page(self) -> Context:
        """What the page alone shows: methods in their own words, and the geometry of every stratum whose features are
        stored and still those of the records."""
        from kshot.theory.probes.sketch import sketches

        folder, shown = Records(self.folder), self.panel
        store, absent = Store(self.options.features), f"no features in {self.options.features}"
        # A sketch shows the means of every class's shots.
        shown = shown.where(shown.profile == BALANCED)
        cells = set(zip(shown.dataset.tolist(), shown.backbone.tolist(), shown.tier.tolist(), strict=True))
        try:
            check_stored(folder, store)
            drawn = list(sketches(folder.study(), store, cells))
        except KshotError as error:
            drawn, absent = [], f"the features in {self.options.features} cannot be used: {error}"
        measured = self._with_metrics.measured
        return replace(
            self._with_headroom,
            described=_described(folder.study()),
            sketches=drawn,
            sketches_absent=absent,
            measured=measured,
        )

    def __repr__(self) -> str:
        part = f", only {described(self.chosen)}" if self.chosen else ""
        return f"{self.records.num_rows} records in {self.folder}{part}\n{self.leaderboard()!r}"

    def _repr_html_(self) -> str:
        return self.leaderboard().html()


def load_records(
    folder: Path | str,
    *,
    features: Path | str = "features",
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
    options = Options(Path(features), other, plain, corrected, headroom)
    return Results(load_table(folder), Path(folder), options, {})


def _own(folder: Path) -> list[str]:
    """The methods of a study that do not come with kshot, as the records name them."""
    try:
        study = Records(folder).study()
    except KshotError:
        return []
    return [name for name, spec in study.methods().items() if spec.use not in registry.BUILTIN]


def _described(study: Study) -> dict[str, Described]:
    """The methods that kshot knows, in their own words; no outsider's code is run for a page."""
    known = {name: spec for name, spec in study.methods().items() if spec.use in registry.BUILTIN}
    heads = {name: registry.create(spec.use, **spec.params) for name, spec in known.items()}
    return {
        name: Described(
            head.info.paper, summary(type(head)), parameter_words(type(head)), f"kshot.{type(head).__name__}"
        )
        for name, head in heads.items()
    }


def _tuple(names: Names) -> tuple[str | int, ...]:
    return (names,) if isinstance(names, str | int) else tuple(names)
