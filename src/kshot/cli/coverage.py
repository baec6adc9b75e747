"""`kshot coverage`: do the intervals keep their promise?"""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import console, existing_records


def coverage(
    records: Annotated[
        Path | None, typer.Argument(help="Match the variances of these records; the paper's unless given.")
    ] = None,
    method: Annotated[str, typer.Option(help="The contrast whose variances are matched.")] = "clap",
    baseline: Annotated[str, typer.Option(help="What it is compared with.")] = "oracle_lambda",
    trials: Annotated[int, typer.Option(min=100, help="Simulated worlds.")] = 20_000,
) -> None:
    """Intervals: simulate how often nominal 95 % intervals hold the true mean, percentile and Student-t."""
    from kshot.stats.coverage import PAPER_DESIGN, simulate_coverage

    design = PAPER_DESIGN if records is None else _matched(existing_records(records), method, baseline)
    simulated = simulate_coverage(design, trials)
    out = console()
    out.print(
        f"{len(design.sizes)} clusters of {min(design.sizes)} to {max(design.sizes)} cells; standard deviation "
        f"{design.between:.2f} between and {design.within:.2f} within; {simulated.trials} simulated worlds"
    )
    out.print(f"percentile interval  {100 * simulated.percentile:.1f} %")
    out.print(
        f"Student-t interval   {100 * simulated.student_t:.1f} %  (Monte Carlo error {100 * simulated.error:.1f})"
    )


def _matched(folder: Path, method: str, baseline: str):
    from kshot.bench.records import load_table
    from kshot.errors import StudyError, unknown
    from kshot.report.slices import primary
    from kshot.stats.coverage import matched_design
    from kshot.stats.panel import panel

    shown = primary(panel(load_table(folder)))
    for name in (method, baseline):
        if name not in shown.methods:
            raise StudyError(unknown("method", name, shown.methods, "Choose with --method and --baseline."))
    if len(set(shown.dataset.tolist())) < 2:
        raise StudyError("coverage needs records of at least two datasets: an interval is over datasets.")
    return matched_design(shown.column(method) - shown.column(baseline), shown.dataset)
