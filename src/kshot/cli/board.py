"""`kshot board`: submit a method's results, check a submission, build the page."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.bench.run import choose_engine
from kshot.bench.study import load_study
from kshot.board.site import build as build_pages
from kshot.board.submit import submit as write_submission
from kshot.board.verdict import REFUSED, BoardVerdict, Recomputation, judge_folder
from kshot.cli import shared
from kshot.cli.shared import CORES, FEATURES
from kshot.files import write_text

app = shared.command_group(add_completion=False, help="Submit, check and show results of outside methods.")
StudyOption = Annotated[
    Path | None, Option("--study", help="The study; unless given, the one that the submission names.")
]
KeptOption = Annotated[
    list[Path] | None, Option("--records", help="Records of kshot's own heads, to find copies. Repeatable.")
]


@app.command()
def submit(
    method: Annotated[str, Argument(help="The method, as package.module:Class.")],
    output: Annotated[Path, Option("--output", "-o", help="Folder of the submission.")],
    study: Annotated[Path, Option("--study", help="A study file, or a name of `kshot ls studies`.")] = Path("open"),
    about: Annotated[Path | None, Option(help="Your about.toml; without it a form is written to fill in.")] = None,
    wheel: Annotated[Path | None, Option(help="The method's wheel; made from its modules unless given.")] = None,
    engine: shared.EngineOption = "local",
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
) -> None:
    """Compute a method's missing cells and write records, source and answers as a folder to submit."""
    folder = write_submission(method, study, output, features, choose_engine(engine, workers), about, wheel)
    _print(judge_folder(folder.absolute(), features, load_study(study)))
    typer.echo(f"next: kshot board check {folder} --recompute 20")


@app.command()
def check(
    folder: Annotated[Path, Argument(help="Folder of one submission.")],
    cells: Annotated[int, Option("--recompute", min=0, help="Number of random cells to run again, isolated.")] = 0,
    seed: Annotated[
        int | None, Option(min=0, help="Seed that chooses these cells; random and printed unless given.")
    ] = None,
    study: StudyOption = None,
    records: KeptOption = None,
    output: Annotated[Path | None, Option("--output", "-o", help="File to write the verdict to.")] = None,
    day: Annotated[
        datetime | None,
        Option("--date", formats=["%Y-%m-%d"], metavar="YYYY-MM-DD", help="Date in the verdict; today unless given."),
    ] = None,
    seconds: Annotated[int, Option(min=1, help="Time limit of one fit.")] = 600,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
) -> None:
    """Check a submission without running it; --recompute runs some cells again, isolated. Exit code 1 if refused."""
    again = Recomputation(cells, seed, seconds, workers) if cells else None
    base = load_study(study) if study else None
    verdict = judge_folder(folder.absolute(), features, base, records or [], again, day and day.date())
    if output:
        write_text(output, verdict.to_json())
    _print(verdict)
    if verdict.verdict == REFUSED:
        raise typer.Exit(1)


@app.command()
def build(
    submissions: Annotated[Path, Argument(help="Folder of submissions.")],
    records: Annotated[Path, Option("--records", help="Kept records of kshot's own heads on the board's study.")],
    output: Annotated[Path, Option("--output", "-o", help="Folder of the pages.")] = Path("site"),
    verdicts: Annotated[Path, Option(help="Folder of verdicts: one NAME.json for each submission.")] = Path("verdicts"),
    features: shared.FeaturesOption = FEATURES,
) -> None:
    """Write the board as static pages. A submission without a verdict is checked, and declared at best."""
    built = build_pages(records, submissions, verdicts, output, features)
    out = shared.console()
    for name, status in built.entries.items():
        out.print(f"{name}: {status}", markup=False)
    for name, reason in built.left_out.items():
        out.print(f"{name}: left out, {reason}", markup=False)
    out.print(f"wrote {built.page}", markup=False)


def _print(verdict: BoardVerdict) -> None:
    out = shared.console()
    run = f", {len(verdict.cells)} cells run again with seed {verdict.seed}" if verdict.cells else ""
    out.print(f"{verdict.entry}: {verdict.verdict}{run}", markup=False)
    for reason in verdict.reasons[:10]:
        out.print(f"  {reason}", markup=False)
    if len(verdict.reasons) > 10:
        out.print(f"  and {len(verdict.reasons) - 10} more")
