"""`kshot verify`: does the theory hold as computed?"""

from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import console

if TYPE_CHECKING:
    from kshot.paper.checks.trial import Verdict


def verify(
    quick: Annotated[
        bool, typer.Option("--quick", help="A twentieth of the replicates, tolerances widened to match.")
    ] = False,
) -> None:
    """Theory: check every closed form by Monte Carlo; exit code 1 if a claim fails."""
    from kshot.paper.checks import CHECKS
    from kshot.paper.checks.trial import FULL, QUICK
    from kshot.progress import Progress

    out, verdicts = console(), []
    with Progress("checks", len(CHECKS), pause=0) as progress:
        for check in CHECKS.values():
            verdicts += check(QUICK if quick else FULL)
            progress.advance(1, check.title)
    out.print(_table(verdicts))
    failed = [v for v in verdicts if not v.passed]
    if failed:
        typer.echo(f"kshot: {len(failed)} of {len(verdicts)} claims fail.", err=True)
        raise typer.Exit(1)
    out.print(f"all {len(verdicts)} claims hold")


def _table(verdicts: "list[Verdict]"):
    from kshot.report.table import Number, Table

    rows = tuple(
        (v.claim, Number(v.estimate, ".2g"), Number(v.tolerance, ".2g"), "holds" if v.passed else "FAILS")
        for v in verdicts
    )
    caption = "Estimate: the largest discrepancy found; |z| and z are in standard errors."
    return Table("The theory, verified", ("claim", "estimate", "tolerance", "verdict"), rows, caption)
