"""`kshot verify`: does the theory hold as computed?"""

from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import console

if TYPE_CHECKING:
    from rich.console import Console

    from kshot.theory.checks.trial import Verdict


def verify(
    quick: Annotated[
        bool, typer.Option("--quick", help="A twentieth of the replicates, tolerances widened to match.")
    ] = False,
) -> None:
    """Check every closed form by Monte Carlo; exit code 1 if any claim fails."""
    from kshot.theory import checks
    from kshot.theory.checks.trial import FULL, QUICK

    out = console()
    with CheckProgress(out, len(checks.NAMES)) as progress:
        verdicts = checks.verify(QUICK if quick else FULL, progress.advance)
    out.print(_table(verdicts))
    failed = [v for v in verdicts if not v.passed]
    if failed:
        typer.echo(f"kshot: {len(failed)} of {len(verdicts)} claims fail.", err=True)
        raise typer.Exit(1)
    out.print(f"all {len(verdicts)} claims hold")


class CheckProgress:
    """A bar on a terminal, a line per finished check elsewhere."""

    def __init__(self, out: "Console", total: int):
        from rich.progress import Progress

        self.out, self.total = out, total
        self.bar = Progress(console=out, disable=not out.is_terminal, transient=True)
        self.task = self.bar.add_task("", total=total)
        self.finished: list[str] = []

    def __enter__(self) -> "CheckProgress":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def advance(self, title: str, done: float) -> None:
        self.bar.update(self.task, description=title, completed=len(self.finished) + done)
        if done >= 1 and title not in self.finished:
            self.finished.append(title)
            if not self.out.is_terminal:
                self.out.print(f"{len(self.finished)}/{self.total} {title}")


def _table(verdicts: "list[Verdict]"):
    from kshot.report.numbers import Number
    from kshot.report.table import Table

    rows = tuple(
        (v.claim, Number(v.estimate, ".2g"), Number(v.tolerance, ".2g"), "holds" if v.passed else "FAILS")
        for v in verdicts
    )
    caption = "Estimate: the largest discrepancy found; |z| and z are in standard errors."
    return Table("The theory, verified", ("claim", "estimate", "tolerance", "verdict"), rows, caption)
