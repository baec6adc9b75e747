"""The modules that one CLAP cell enters on its way from `kshot run` to its record, and on to the leaderboard.

A reader who wants to follow a cell opens these files in this order. Run: python tools/walk.py
"""

import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

STUDY = """
name = "walk"
datasets = ["tuxpaint"]
backbones = ["lite0"]
tiers = ["dataset"]
shots = [2]
seeds = [0]
methods = [{ use = "clap", as = "clap_short", epochs = 2 }]
"""


def watch(call: Callable[[], object], seen: dict[str, None]) -> None:
    """Add kshot's modules in the order in which one of their functions is first called; importing does not count."""

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        # Bodies of modules and classes, and what a dataclass generates, are no steps of the way.
        written = frame.f_code.co_flags & inspect.CO_OPTIMIZED and "<" not in frame.f_code.co_filename
        if event == "call" and written and name.split(".")[0] == "kshot" and not importing(frame):
            seen.setdefault(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)


def importing(frame: FrameType) -> bool:
    """Whether the body of one of kshot's modules is under way above this call."""
    above = frame.f_back
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_globals["__name__"].startswith("kshot."):
            return True
        above = above.f_back
    return False


def walk(folder: Path) -> tuple[list[str], list[str]]:
    """Modules up to the moment when the record stands in its folder, then those entered for the first time from there
    to the leaderboard."""
    from kshot.bench import run as running
    from kshot.cli.main import app

    study = folder / "walk.toml"
    study.write_text(STUDY)
    seen: dict[str, None] = {}
    to_record: list[str] = []

    def note_written(*arguments: Any) -> None:
        compute(*arguments)
        to_record.extend(seen)

    compute, running.compute = running.compute, note_written
    records = folder / "records"
    places = ["--records", str(records), "--features", str(folder / "features")]
    # One worker is this process, where it can be watched.
    command = ["run", str(study), "--workers", "1", *places]
    watch(lambda: app(command, standalone_mode=False), seen)
    command = ["report", str(records), "--table", "leaderboard", "--features", str(folder / "features")]
    watch(lambda: app(command, standalone_mode=False), seen)
    return to_record, [name for name in seen if name not in to_record]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        to_record, to_board = walk(Path(folder))
    for title, names in (("to its record", to_record), ("more to the leaderboard", to_board)):
        print(f"{len(names)} modules {title}")
        for number, name in enumerate(names, start=1):
            print(f"{number:4d}  {name}")


if __name__ == "__main__":
    main()
