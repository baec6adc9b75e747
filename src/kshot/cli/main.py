"""`kshot`: the list of commands; user errors end with one sentence and exit code 2."""

import io
import logging
import sys

import typer

from kshot import __version__
from kshot.cli import encode, features, fit, import_, ls, methods, paper, pictures, plan, records, report, run, status
from kshot.cli.shared import command_group
from kshot.errors import SHOW_CONTROLS, KshotError

INTERRUPTED = 130
COMMANDS = {
    "Your own pictures": {
        "fit": fit.fit,
        "predict": pictures.predict,
        "explain": pictures.explain,
        "change": fit.change,
        "export": pictures.export,
        "serve": pictures.serve,
    },
    "Studies": {
        "run": run.run,
        "plan": plan.plan,
        "status": status.status,
        "report": report.report,
        "slurm": plan.slurm,
    },
    "Methods": {"judge": methods.judge, "knob": methods.knob},
    "Features": {"encode": encode.encode, "import": import_.import_, "ls": ls.ls, "show": ls.show},
}
GROUPS = {"features": features.app, "records": records.app, "paper": paper.app}

app = command_group(
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Few-shot heads for CLIP-like models: what tuning them is worth, and which one to use.",
)
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name, rich_help_panel="Groups of commands (kshot GROUP --help)")


class EchoHandler(logging.Handler):
    """Print the library's log: information to standard output, warnings to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        warning = record.levelno >= logging.WARNING
        message = record.getMessage().translate(SHOW_CONTROLS)
        typer.echo(f"kshot: {message}" if warning else message, err=warning)


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
        logger.addHandler(EchoHandler())


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Print \x.. for a character outside the terminal's encoding, or a file name that is not UTF-8.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KshotError as error:
        _end(str(error), 2)
    except (OSError, MemoryError) as error:
        # Names that no file system takes, files that are none (/proc), no permission, no memory.
        what = f"{str(getattr(error, 'filename', None) or '')[:200]} {getattr(error, 'strerror', None) or error}"
        _end(f"{type(error).__name__}: {what.strip()}.", 2)
    except (KeyboardInterrupt, SystemExit) as ended:
        # typer turns Ctrl-C into this exit before it reaches us.
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        _end("interrupted. What was finished is kept; run the same command to continue.", INTERRUPTED)


def _end(message: str, code: int) -> None:
    typer.echo(f"kshot: {message.translate(SHOW_CONTROLS)}", err=True)
    sys.exit(code)
