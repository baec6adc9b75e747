"""Progress of long work: a bar in a terminal, elsewhere a logged line every few seconds."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

SECONDS_BETWEEN_LINES = 5.0
logger = logging.getLogger("kshot")


class Progress:
    """Counts `unit`s up to `total`, or without an end where that is None; without a unit it only names the work.

    With `ends` the last count is logged, too, however soon it comes. Inside `one_bar` all counts go there.
    """

    whole: ClassVar["Progress | None"] = None

    def __init__(
        self, unit: str, total: int | None = None, pause: float | int = SECONDS_BETWEEN_LINES, ends: bool = True
    ):
        self.unit, self.total, self.pause, self.ends = unit, total, pause, ends
        self.count, self.bar = 0.0, None

    def __enter__(self) -> "Progress":
        self.started = self.told = time.monotonic()
        if self.whole is not None:
            return self
        if sys.stderr.isatty() and logger.isEnabledFor(logging.INFO) and self.total != 0:
            self.bar, self.task = _bar(self.unit, self.total)
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.total is None and self.unit:
            self._tell(self.unit)

    def advance(self, done: float | int = 1, what: str = "") -> None:
        """`what` names the work in hand, where one thing differs from the next."""
        if self.whole not in (None, self):
            return self.whole.advance(done, what or self.unit)
        self.count += done
        if self.bar is not None:
            self.bar.update(self.task, advance=done, description=what or self.unit)
        elif time.monotonic() - self.told >= self.pause or (self.ends and self.count == self.total):
            self._tell(what or self.unit)

    def _tell(self, what: str) -> None:
        self.told = time.monotonic()
        seconds = max(self.told - self.started, 1e-9)
        if not self.unit:
            logger.info("… %s", what)
        elif self.total is None:
            logger.info("%d %s, %.1f per second", self.count, what, self.count / seconds)
        else:
            left = seconds * (self.total / self.count - 1) if self.count else 0
            more = f", about {human_seconds(left)} left" if left else ""
            logger.info("%d/%d %s, %s%s", self.count, self.total, what, human_seconds(seconds), more)


@contextmanager
def one_bar(unit: str, total: int) -> Iterator[None]:
    """One bar for work in steps that each have a `Progress`; it shows the names of the steps."""
    with Progress(unit, total, ends=False) as Progress.whole:
        try:
            yield
        finally:
            Progress.whole = None


def _bar(unit: str, total: int | None) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    return bar, bar.add_task(unit, total=total)


def human_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{_short(seconds / 3600)} h"


def human_bytes(size: float | int) -> str:
    if size < 1e6:
        return f"{size:.0f} B" if size < 1000 else f"{size / 1e3:.0f} kB"
    return f"{_short(size / 1e6)} MB" if size < 1e9 else f"{_short(size / 1e9)} GB"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"
