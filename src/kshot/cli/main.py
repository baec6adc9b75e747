"""`kshot`: the commands, and one place where every user error becomes a sentence and exit code 2."""

import io
import sys

import typer

from kshot import __version__
from kshot.cli import (
    check,
    coverage,
    diagnose,
    encode,
    explain,
    export,
    fit,
    import_,
    judge,
    knob,
    ls,
    open,
    plan,
    predict,
    probe,
    published,
    records,
    report,
    run,
    serve,
    show,
    simulate,
    slurm,
    status,
    verify,
)
from kshot.errors import KshotError

INTERRUPTED = 130
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="What is your few-shot knob worth, and is a better head waiting for free?",
)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("status")(status.status)
app.command("retry")(run.retry)
app.command("report")(report.report)
app.command("judge")(judge.judge)
app.command("coverage")(coverage.coverage)
app.command("knob")(knob.knob)
app.command("diff")(records.diff)
app.command("compact")(records.compact)
app.command("precision")(records.precision)
app.command("slurm")(slurm.slurm)
app.command("ls")(ls.ls)
app.command("show")(show.show)
app.command("check")(check.check)
app.command("simulate")(simulate.simulate)
app.command("diagnose")(diagnose.diagnose)
app.command("probe")(probe.probe)
app.command("published")(published.published)
app.command("verify")(verify.verify)
app.command("encode")(encode.encode)
app.command("import")(import_.import_)
app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("explain")(explain.explain)
app.command("export")(export.export)
app.command("serve")(serve.serve)
app.add_typer(open.app, name="open")


def _print_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"kshot {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool | None = typer.Option(
        None, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def main() -> None:
    _escape_what_the_terminal_cannot_show()
    try:
        app()
    except KshotError as error:
        typer.echo(f"kshot: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as ended:
        # typer turns Ctrl-C into this exit before it reaches us.
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        typer.echo(
            "kshot: interrupted. What was finished is kept; run the same command to continue.", err=True
        )
        sys.exit(INTERRUPTED)


def _escape_what_the_terminal_cannot_show() -> None:
    """A character outside the terminal's encoding, or a file name that is not UTF-8, ends no command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
