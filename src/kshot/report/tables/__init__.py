"""Every table of a report, in reading order; each is made when it is asked for."""

from collections.abc import Callable, Mapping

from kshot.errors import StudyError, unknown
from kshot.report.context import Context
from kshot.report.focus import of_one_profile, why_empty
from kshot.report.table import Table, absent_table
from kshot.report.tables import (
    beyond_accuracy,
    contrasts,
    knob_atlas,
    new_classes,
    ratio_estimates,
    reruns,
    shot_profiles,
    standings,
    strata,
    stratum_probes,
    workings,
)
from kshot.stats.panel import Panel

TABLES: Mapping[str, Callable[[Panel, Context], Table]] = {
    "leaderboard": standings.leaderboard_table,
    "transductive": standings.transductive_table,
    "metrics": beyond_accuracy.metrics_table,
    "profiles": shot_profiles.profiles_table,
    "unseen": new_classes.unseen_table,
    "base_to_new": new_classes.base_to_new_table,
    "headline": standings.headline_table,
    "per_dataset": standings.per_dataset_table,
    "per_backbone": contrasts.per_backbone_table,
    "by_shots": contrasts.by_shots_table,
    "text_free": contrasts.text_free_table,
    "further_contrasts": contrasts.further_contrasts_table,
    "strata": strata.strata_table,
    "probes": stratum_probes.probes_table,
    "sample_level": strata.sample_table,
    "prior_upgrade": ratio_estimates.prior_upgrade_table,
    "ratio_tracking": ratio_estimates.tracking_table,
    "knobs": knob_atlas.knobs_table,
    "fixed_heads": knob_atlas.fixed_heads_table,
    "datasets": workings.datasets_table,
    "cost": workings.cost_table,
    "precision": reruns.precision_table,
    "augmentation": reruns.augmentation_table,
}

# These show whatever metric was asked for; the others are about accuracy.
OF_ANY_METRIC = frozenset({"leaderboard", "transductive", "per_dataset", "profiles"})
# These set profiles of shots side by side; the others show one.
OF_ALL_PROFILES = frozenset({"profiles", "unseen", "base_to_new"})


def make_table(key: str, panel: Panel, context: Context | None = None) -> Table:
    """One of them; where no cell of it would hold a figure, the reason instead."""
    if key not in TABLES:
        raise StudyError(unknown("table", key, TABLES, "Leave --table out for all."))
    shown = panel if key in OF_ALL_PROFILES else of_one_profile(panel)
    table = TABLES[key](shown, context or Context())
    return table if table.has_figures else absent_table(key, table.title, why_empty(panel))


def all_tables(panel: Panel, context: Context | None = None) -> list[Table]:
    return [make_table(key, panel, context) for key in TABLES]
