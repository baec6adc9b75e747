"""`kshot pack` and `kshot unpack`: all that a study left behind, in one file."""

from pathlib import Path
from typing import Annotated

import typer


def pack(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders to publish: features, records with their probes and reports.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The archive to write.")] = Path("release.tar"),
) -> None:
    """A release: put features, records, probes and reports into one file, with a checksum of each."""
    from kshot.bench.release import write_release

    typer.echo(f"packed {write_release(folders, output)} files into {output}")


def unpack(
    archive: Annotated[Path, typer.Argument(help="A file that `kshot pack` wrote.")],
    target: Annotated[Path, typer.Argument(help="Folder to create.")],
) -> None:
    """A release: open one; every file is held to its checksum, and nothing is kept unless all fit."""
    from kshot.bench.release import open_release

    typer.echo(f"unpacked {open_release(archive, target)} files into {target}")
