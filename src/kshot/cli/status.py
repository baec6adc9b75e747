"""`kshot status`: records there and missing, and the reasons of failures."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kshot.bench.records import Records, SavedQuery
from kshot.bench.status import RunStatus, run_status
from kshot.cli.shared import RECORDS, RecordsOption, console, records_and_study
from kshot.progress import human_seconds
from kshot.report.table import Table, count

POLL_SECONDS = 2.0


def status(
    study: Annotated[str | None, Argument(help="A study; needed where several share the records.")] = None,
    watch: Annotated[bool, Option("--watch", help="Stay and show rate and time left until done.")] = False,
    records: RecordsOption = RECORDS,
) -> None:
    """Show records there and missing of what a study asked for last, and why methods failed or are undefined."""
    folder, name = records_and_study(study, records)
    cache = Records(folder)
    saved = cache.saved(name)
    if watch:
        _watch(cache, saved)
    _show(run_status(cache, saved), folder)


def _show(state: RunStatus, folder: Path) -> None:
    out = console()
    out.print(f"{state.study}, in {folder}", markup=False)
    thin = f", {state.dropped:,} more left out (thin pool)" if state.dropped else ""
    begun, pairs = state.pairs
    out.print(f"{state.cells:,} cells{thin}; {begun} of {pairs} pairs of dataset and backbone begun")
    out.print(f"{state.total:,} records: {state.done:,} there, {state.missing:,} missing")
    kinds = ("ok", "undefined", "failed")
    rows = tuple((name, *(count(counts[kind]) for kind in kinds)) for name, counts in state.methods.items())
    out.print(Table("Records by status", ("method", *kinds), rows, ""))
    for line in _reasons(state):
        out.print(line, markup=False)
    if state.missing:
        out.print("next: run the same `kshot run` command to compute what is missing")
    if state.failed:
        out.print(f"repair the cause, then `kshot run {state.study} --retry`", markup=False, soft_wrap=True)


def _reasons(state: RunStatus) -> list[str]:
    """The three commonest reasons of each method; methods that need more shots than a cell has share a line."""
    lines: list[str] = []
    too_few: dict[str, Counter[str]] = {}
    for name, reasons in state.reasons.items():
        method, others = name.rpartition(" ")[0], Counter[str]()
        for reason, times in reasons.items():
            needed, few, _ = reason.removeprefix(f"{method} ").partition("; class ")
            if few:
                too_few.setdefault(needed, Counter())[method] += times
            else:
                others[reason] += times
        lines += [f"{name}, {times}×: {reason}" for reason, times in others.most_common(3)]
    return lines + [f"{', '.join(times)} undefined, {times.total()}×: {needed}" for needed, times in too_few.items()]


def _watch(cache: Records, saved: SavedQuery) -> None:
    """Print records there and records per second since the watch began, every two seconds until all are done."""
    out, wanted = console(), saved.keys()
    first, began, printed = len(wanted & cache.keys()), time.monotonic(), -1
    while True:
        done = len(wanted & cache.keys())
        rate = (done - first) / max(time.monotonic() - began, 1e-9)
        left = f", {human_seconds((len(wanted) - done) / rate)} left" if rate > 0 and done < len(wanted) else ""
        if out.is_terminal or done != printed:
            end = "\r" if out.is_terminal else "\n"
            out.print(f"{done:,}/{len(wanted):,} records, {rate:.2f} per second{left}      ", end=end)
            printed = done
        if done >= len(wanted):
            break
        time.sleep(POLL_SECONDS)
    out.print()
