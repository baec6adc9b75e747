"""Every table of a report, in reading order."""

from kshot.report.context import Context
from kshot.report.table import Table
from kshot.report.tables import contrasts, ratios, standings, strata, workings
from kshot.stats.panel import Panel


def all_tables(panel: Panel, context: Context | None = None) -> list[Table]:
    context = context or Context()
    return [
        standings.leaderboard_table(panel),
        standings.headline_table(panel, context),
        standings.per_dataset_table(panel),
        contrasts.per_backbone_table(panel),
        contrasts.by_shots_table(panel),
        contrasts.text_free_table(panel),
        strata.strata_table(panel, context),
        strata.sample_table(panel),
        ratios.prior_upgrade_table(panel),
        ratios.tracking_table(panel),
        workings.datasets_table(panel, context),
        workings.cost_table(panel),
        workings.precision_table(panel, context),
    ]
