"""Every table of a report in reading order, and what each of them needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kshot.errors import StudyError, unknown
from kshot.report.context import Context
from kshot.report.notes import provenance, sentences, why_empty
from kshot.report.slices import focus, of_one_profile
from kshot.report.table import Table, metric_name
from kshot.report.tables import (
    about_study,
    contrasts,
    encoders,
    knob_atlas,
    ratio_estimates,
    shot_profiles,
    standings,
    strata,
    stratum_probes,
    which_head,
)
from kshot.stats.panel import Panel


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table's title and its maker, which returns a sentence where these records cannot fill it.

    `any_metric`: shows the metric that was asked for, the others accuracy. `all_profiles`: sets profiles of shots side
    by side, the others show one. `answers`, `headroom`: reads these from the context. `optional`: left out of a whole
    report where it is empty.
    """

    title: str
    make: Callable[[Panel, Context], Table | str]
    any_metric: bool = False
    all_profiles: bool = False
    answers: bool = False
    headroom: bool = False
    optional: bool = False


TABLES: Mapping[str, TableEntry] = {
    "which_head": TableEntry("Which head to use, by shots", which_head.which_head, any_metric=True),
    "leaderboard": TableEntry("Leaderboard: mean {metric} by shots", standings.leaderboard_table, any_metric=True),
    "transductive": TableEntry("Transductive heads: mean {metric} by shots", standings.transductive, any_metric=True),
    "metrics": TableEntry("Beyond accuracy: means over the same cells", standings.metrics, answers=True, optional=True),
    "profiles": TableEntry(
        "Uneven and missing shots: {metric} by profile",
        shot_profiles.profiles,
        any_metric=True,
        all_profiles=True,
        optional=True,
    ),
    "unseen": TableEntry(
        "Classes without shots beside classes with shots: accuracy (%)",
        shot_profiles.unseen,
        all_profiles=True,
        answers=True,
        optional=True,
    ),
    "headline": TableEntry("Against the oracle ratio (percentage points)", standings.headline),
    "per_dataset": TableEntry("{Metric} per dataset", standings.per_dataset, any_metric=True),
    "per_backbone": TableEntry(
        "Backbone consistency: against the oracle ratio (percentage points)", contrasts.per_backbone
    ),
    "by_shots": TableEntry("By shots, {backbone}: against the oracle ratio (percentage points)", contrasts.by_shots),
    "text_free": TableEntry(
        "Text-free reference points: logistic probe against the oracle ratio (points)", contrasts.text_free
    ),
    "further_contrasts": TableEntry("Further contrasts, K ≥ 2 (percentage points)", contrasts.further_contrasts),
    "text_strength": TableEntry(
        "By strength of text: against the oracle ratio (percentage points)", encoders.text_strength, optional=True
    ),
    "encoder_order": TableEntry("The order of encoders, head by head", encoders.encoder_order, optional=True),
    "strata": TableEntry("Strata: surplus over the oracle ratio (percentage points)", strata.strata, headroom=True),
    "probes": TableEntry("Probes, pooled over the strata", stratum_probes.probes),
    "sample_level": TableEntry("Picture by picture: McNemar's exact test within cells", strata.sample_level),
    "prior_upgrade": TableEntry("Prior upgrade: change against the generic prompt", ratio_estimates.prior_upgrade),
    "ratio_tracking": TableEntry("Estimated against oracle ratio", ratio_estimates.ratio_tracking),
    "knobs": TableEntry("The atlas: test accuracy (%) of every knob under each selector", knob_atlas.knobs),
    "fixed_heads": TableEntry("Heads with their knobs at the fixed values (percentage points)", knob_atlas.fixed_heads),
    "datasets": TableEntry("Datasets and the sanity gate", about_study.datasets),
    "cost": TableEntry("Cost per method", about_study.cost),
    "precision": TableEntry("Precision arm: what moves (percentage points)", about_study.precision),
    "augmentation": TableEntry(
        "Augmentation arm: with views minus without (percentage points)", about_study.augmentation
    ),
}


def find_table(key: str) -> TableEntry:
    if key not in TABLES:
        raise StudyError(unknown("table", key, TABLES, "Leave --table out for all."))
    return TABLES[key]


def make_table(key: str, panel: Panel, context: Context | None = None) -> Table:
    """One of them; where no cell of it would hold a figure, the reason instead."""
    entry = find_table(key)
    made = entry.make(panel if entry.all_profiles else of_one_profile(panel), context or Context())
    names = {"metric": metric_name(panel.metric), "Metric": metric_name(panel.metric, capital=True)}
    title = entry.title.format(**names, backbone=focus(panel).backbone)
    if isinstance(made, str) or not made.has_figures:
        reason = made if isinstance(made, str) else why_empty(panel)
        return Table(title, (), (), reason, key=key)
    return replace(made, title=made.title or title, caption=sentences(made.caption, provenance(panel)), key=key)


def all_tables(panel: Panel, context: Context | None = None) -> list[Table]:
    return [make_table(key, panel, context) for key in TABLES]
