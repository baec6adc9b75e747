"""`kshot`: the commands, and one place where every user error becomes a sentence and exit code 2."""

import io
import logging
import sys

import typer

from kshot import __version__
from kshot.cli import (
    change,
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
    release,
    report,
    road,
    run,
    serve,
    show,
    simulate,
    slurm,
    status,
    verify,
)
from kshot.cli.shared import PLAIN_PAGES
from kshot.errors import SHOW_CONTROLS, KshotError

INTERRUPTED = 130
app = typer.Typer(
    **PLAIN_PAGES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Few-shot heads for CLIP-like models: what tuning them is worth, and which one to use.",
)
GROUPS = {
    "A head for your own pictures": (
        ("fit", fit.fit),
        ("predict", predict.predict),
        ("explain", explain.explain),
        ("change", change.change),
        ("labels", change.labels),
        ("export", export.export),
        ("serve", serve.serve),
    ),
    "Studies": (
        ("run", run.run),
        ("report", report.report),
        ("status", status.status),
        ("plan", plan.plan),
        ("retry", run.retry),
        ("slurm", slurm.slurm),
        ("compact", records.compact),
        ("probe", probe.probe),
        ("road", road.road),
        ("pack", release.pack),
        ("unpack", release.unpack),
    ),
    "Methods": (("judge", judge.judge), ("knob", knob.knob)),
    "Features": (
        ("ls", ls.ls),
        ("show", show.show),
        ("encode", encode.encode),
        ("import", import_.import_),
        ("simulate", simulate.simulate),
        ("diagnose", diagnose.diagnose),
    ),
    "Checks": (
        ("check", check.check),
        ("verify", verify.verify),
        ("published", published.published),
        ("coverage", coverage.coverage),
        ("diff", records.diff),
        ("precision", records.precision),
    ),
}
for group, commands in GROUPS.items():
    for name, command in commands:
        app.command(name, rich_help_panel=group)(command)
app.add_typer(open.app, name="open", rich_help_panel="Features")


class Spoken(logging.Handler):
    """What the library reports, as a command says it: news on standard output, warnings beside it."""

    def emit(self, record: logging.LogRecord) -> None:
        warning = record.levelno >= logging.WARNING
        said = record.getMessage().translate(SHOW_CONTROLS)
        typer.echo(f"kshot: {said}" if warning else said, err=warning)


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
    logger = logging.getLogger("kshot")
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        logger.addHandler(Spoken())


def main() -> None:
    _escape_what_the_terminal_cannot_show()
    try:
        app()
    except KshotError as error:
        typer.echo(f"kshot: {str(error).translate(SHOW_CONTROLS)}", err=True)
        sys.exit(2)
    except (OSError, MemoryError) as error:
        # Names that no file system takes, files that are none (/proc), no permission, no memory.
        what = f"{str(getattr(error, 'filename', None) or '')[:200]} {getattr(error, 'strerror', None) or error}"
        typer.echo(f"kshot: {type(error).__name__}: {what.strip().translate(SHOW_CONTROLS)}.", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as ended:
        # typer turns Ctrl-C into this exit before it reaches us.
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        typer.echo("kshot: interrupted. What was finished is kept; run the same command to continue.", err=True)
        sys.exit(INTERRUPTED)


def _escape_what_the_terminal_cannot_show() -> None:
    """A character outside the terminal's encoding, or a file name that is not UTF-8, ends no command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
