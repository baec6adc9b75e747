"""`kshot board submit`: compute a method's records on a board, and write them as a folder that others can check."""

import platform
import shutil
from importlib.metadata import version
from pathlib import Path

from kshot.bench.compact import compact
from kshot.bench.engines import Engine
from kshot.bench.record import BACKUP
from kshot.bench.records import Records
from kshot.bench.run import complete
from kshot.bench.status import failed_records
from kshot.bench.study import MethodSpec, bundled_studies, load_study
from kshot.board.about import blank_about, parse_about
from kshot.board.rules import open_board
from kshot.board.submission import ABOUT, ENTRY, RECORDS, EntryFile
from kshot.board.wheel import TAG, check_wheel, write_wheel
from kshot.errors import KshotError
from kshot.files import is_temporary, safe_name, sha256, write_bytes, write_text
from kshot.methods.registry import source_files

LIBRARIES = ("kshot", "numpy", "scipy", "scikit-learn", "pyarrow", "safetensors")
# Folders that a run leaves beside the records; nobody else needs them.
LEFT = ("runs", "failures", "superseded", "damaged", "cells")


def submit(
    method: str,
    study: Path | str,
    output: Path,
    features: Path,
    engine: Engine,
    about: Path | None = None,
    wheel: Path | None = None,
) -> Path:
    """Compute what the submission lacks, and write the folder; about.toml is copied, kept, or a form to fill in."""
    safe_name("submission", output.absolute().name)
    answers = about.read_text(encoding="utf-8") if about else None
    if answers is not None:
        parse_about(answers)
    if ":" not in method:
        raise KshotError(f"give the method as package.module:Class, not as {method}.")
    base = load_study(study)
    board = open_board(base, features)
    records = Records(output / RECORDS)
    complete(board.study_of(MethodSpec(method, method)), records.folder, features, engine)
    if failed := failed_records(records):
        raise KshotError(f"{method} failed in {sum(failed.values())} cells. Type `kshot status {records.folder}`.")
    compact(records)
    _tidy(records.folder)
    held = _put_wheel(method, output, wheel)
    name = str(study) if str(study) in bundled_studies() else base.name
    environment = {library: version(library) for library in LIBRARIES}
    environment |= {"python": platform.python_version(), "platform": platform.platform()}
    entry = EntryFile(method, name, board.hash, held.name, sha256(held), environment)
    write_text(output / ENTRY, entry.to_json())
    if answers is not None or not (output / ABOUT).is_file():
        write_text(output / ABOUT, blank_about() if answers is None else answers)
    return output


def _put_wheel(method: str, output: Path, given: Path | None) -> Path:
    """The wheel that was given, or one made of the method's source files."""
    for old in output.glob("*.whl"):
        old.unlink()
    top = method.partition(":")[0].partition(".")[0]
    path = output / (given.name if given else f"{top}-0-{TAG}.whl")
    if given:
        write_bytes(path, given.read_bytes())
    else:
        files = source_files(method)
        if not files:
            raise KshotError(f"the source files of {method} are not found; give its wheel with --wheel.")
        write_wheel(path, top, files)
    check_wheel(path, method)
    return path


def _tidy(records: Path) -> None:
    """Remove machine names, locks and the header's backup, which only the author's machine needs."""
    for name in LEFT:
        shutil.rmtree(records / name, ignore_errors=True)
    for path in records.rglob(".*"):
        if is_temporary(path):
            path.unlink(missing_ok=True)
    (records / BACKUP).unlink(missing_ok=True)
