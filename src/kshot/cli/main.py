"""`kshot`: the list of commands; user errors end with one sentence and exit code 2."""

import io
import logging
import sys
from importlib import import_module
from typing import Any

import typer
from typer import Option
from typer.core import TyperCommand

from kshot import __version__
from kshot.cli.shared import GroupedCommands, command_group
from kshot.errors import SHOW_CONTROLS, KshotError

INTERRUPTED = 130
# Name, place in kshot.cli and help of every command; a module is imported when one of its commands is called.
COMMANDS = {
    "Your own pictures": (
        ("fit", "fit:fit", "Fit a head to folders of pictures and measure its accuracy"),
        ("predict", "pictures:predict", "Print the classes of pictures with their probabilities"),
        ("export", "pictures:export", "Write a head as ONNX"),
        ("serve", "pictures:serve", "Serve a head as a web page and a JSON API"),
    ),
    "Studies": (
        ("run", "run:run", "Compute the missing cells of a study"),
        ("status", "status:status", "Show cells done and missing, the time left, and failures"),
        ("report", "report:report", "Print leaderboard and verdict; write tables, figures, page"),
    ),
    "Methods": (("judge", "judge:judge", "Run methods beside five others and answer five questions"),),
    "Features": (
        ("encode", "encode:encode", "Encode pictures and prompts into features"),
        ("import", "encode:import_", "Store features that other programs computed"),
        ("doctor", "doctor:doctor", "Print versions, extras, device, encoders, caches of this machine"),
        ("ls", "ls:ls", "List datasets, methods, studies, …, or show all about one name"),
    ),
    "Groups": (
        ("features", "features:app", "check, simulate, sample: stored features"),
        ("records", "records:app", "diff, probe: records"),
        ("paper", "paper:app", "reproduce, published, verify: the paper"),
    ),
}
# What is typed by whom knew kshot 0.1: the same by other means.
GONE = {
    "explain": "type: kshot predict HEAD PICTURE --nearest 5",
    "change": "change the folder of pictures and type: kshot fit FOLDER",
    "plan": "type: kshot run STUDY --plan",
    "slurm": "type: kshot run STUDY --sbatch 16",
    "board": "a method joins by a pull request: docs/add-to-the-board.md",
    "features build": "the open sets come with kshot; python -m tools.open_sets makes them",
    "features knob": "type: kshot judge METHOD STUDY",
    "records check": "nothing to do: a damaged file counts as missing, and the next run computes it",
    "records compact": "nothing to do: a run joins small files",
    "records import": "read the table in Python: kshot.Results.from_frame, docs/other-peoples-runs.md",
    "records pack": "type: tar cf release.tar features records (every file names its own hash)",
    "records unpack": "type: tar xf release.tar",
    "paper coverage": "type: python -m kshot.stats.coverage",
    "paper precision": "type: kshot run precision, then kshot report paper --beside precision",
    "run --engine": "type: --backend dask:ADDRESS",
    "run --min-residue": "type: --least-left N",
    "run --verify": "heads of your own are always checked",
    "export --labels": "keep labels in a CSV file (path,label): kshot fit --labels",
}
PLACES = {name: place for commands in COMMANDS.values() for name, place, _ in commands}


class LazyCommands(GroupedCommands):
    """Group whose help page comes from `COMMANDS`, and whose commands are imported when they are called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name, help=words, rich_help_panel=panel)
            for panel, commands in COMMANDS.items()
            for name, _, words in commands
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in PLACES:
            return None
        module, _, attribute = PLACES[cmd_name].partition(":")
        found = getattr(import_module(f"kshot.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            function, found = found, typer.Typer(rich_markup_mode=None, add_completion=False)
            found.command(cmd_name)(function)
        return typer.main.get_command(found)


app = command_group(
    cls=LazyCommands,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Few-shot heads for CLIP-like models: what tuning them is worth, and which one to use.",
)


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
    version: bool | None = Option(None, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    logger = logging.getLogger("kshot")
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        logger.addHandler(EchoHandler())
        # open_clip gives the root logger a handler, which would print every line again.
        logger.propagate = False


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Print \x.. for a character outside the terminal's encoding, or a file name that is not UTF-8.
            stream.reconfigure(errors="backslashreplace")
    if hint := gone(sys.argv[1:]):
        _end(hint, 2)
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


def gone(words: list[str]) -> str:
    """What to type instead of a command or an option that is no more; empty for all others."""
    named = [word.partition("=")[0] for word in words]
    for typed, hint in GONE.items():
        *command, last = typed.split()
        rest = named[len(command) :]
        if named[: len(command)] == command and last in (rest if last.startswith("-") else rest[:1]):
            return f"`kshot {typed}` is gone; {hint}."
    return ""


def _end(message: str, code: int) -> None:
    typer.echo(f"kshot: {message.translate(SHOW_CONTROLS)}", err=True)
    sys.exit(code)
