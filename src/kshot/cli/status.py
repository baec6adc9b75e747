"""`kshot status`: cells done and missing, the time left, and the reasons of failures."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

from typer import Option

from kshot.bench.plan import seconds_left
from kshot.bench.records import Records
from kshot.bench.status import RunStatus, added_methods, count_done, recorded_pairs, run_status, with_recorded_methods
from kshot.bench.study import Study, load_study, names_study
from kshot.bench.work import find_work
from kshot.cli.shared import FEATURES, FeaturesOption, RecordsArgument, console, existing_records
from kshot.data.store import Store
from kshot.errors import KshotError
from kshot.progress import human_seconds
from kshot.report.table import Table, count

POLL_SECONDS = 2.0


def status(
    records: RecordsArgument,
    watch: Annotated[bool, Option("--watch", help="Stay and show rate and time left until done.")] = False,
    features: FeaturesOption = FEATURES,
) -> None:
    """Show cells done and missing, the time left, and why methods failed or are undefined."""
    folder, study = existing_records(records), None
    if names_study(records):
        study, added = with_recorded_methods(folder, load_study(records))
        again = [f"kshot run {records} --retry", *(f"--method {name}" for name in added)]
    else:
        again = [
            "kshot run STUDY --retry",
            *(f"--method {name}" for name in added_methods(folder)),
            f"--records {folder}",
        ]
    if watch:
        _watch(folder, study)
    state = run_status(folder, study)
    _show(state, folder, " ".join(again), _time_left(folder, study, features) if state.missing else "")


def _time_left(folder: Path, study: Study | None, features: Path) -> str:
    """Estimate from the run's own records on this machine; empty where they are too few."""
    records = Records(folder)
    asked = study or records.study()
    if any(":" in spec.use for spec in asked.methods().values()):
        # An estimate is no reason to import code that a folder names.
        return ""
    try:
        work = find_work(asked, Store(features), records, must_be_stored=False)
        seconds = seconds_left(work, folder)
    except KshotError:
        return ""
    return f"about {human_seconds(seconds)} of one core left, by the records so far" if seconds else ""


def _show(found: RunStatus, folder: Path, again: str, time_left: str) -> None:
    out = console()
    out.print(f"{found.study}, hash {found.hash}, in {folder}", markup=False)
    cells = f"{found.done:,} done, {found.missing:,} missing, {found.dropped:,} dropped (thin pool)"
    here, pairs = recorded_pairs(folder)
    out.print(f"{found.total:,} cells: {cells}; {here} of {pairs} pairs of dataset and backbone begun")
    if time_left:
        out.print(time_left)
    kinds = ("ok", "undefined", "failed")
    rows = tuple((name, *(count(counts[kind]) for kind in kinds)) for name, counts in found.methods.items())
    out.print(Table("Records by status", ("method", *kinds), rows, ""))
    for line in _reasons(found):
        out.print(line, markup=False)
    if found.missing:
        out.print("next: run the same `kshot run` command to compute what is missing")
    if any(counts["failed"] for counts in found.methods.values()):
        advice = f"tracebacks in {folder / 'failures'}; repair the cause, then `{again}`"
        out.print(advice, markup=False, soft_wrap=True)


def _reasons(found: RunStatus) -> list[str]:
    """The three commonest reasons of each method; methods that need more shots than a cell has share a line."""
    lines: list[str] = []
    too_few: dict[str, Counter[str]] = {}
    for name, reasons in found.reasons.items():
        method, others = name.rpartition(" ")[0], Counter[str]()
        for reason, times in reasons.items():
            needed, few, _ = reason.removeprefix(f"{method} ").partition("; class ")
            if few:
                too_few.setdefault(needed, Counter())[method] += times
            else:
                others[reason] += times
        lines += [f"{name}, {times}×: {reason}" for reason, times in others.most_common(3)]
    return lines + [f"{', '.join(times)} undefined, {times.total()}×: {needed}" for needed, times in too_few.items()]


def _watch(folder: Path, study: Study | None) -> None:
    """Print cells done and cells per second since the watch began, every two seconds until all are done."""
    out = console()
    first, total = count_done(folder, study)
    began = time.monotonic()
    shown = -1
    while True:
        done, total = count_done(folder, study)
        rate = (done - first) / max(time.monotonic() - began, 1e-9)
        left = f", {human_seconds((total - done) / rate)} left" if rate > 0 and done < total else ""
        if out.is_terminal or done != shown:
            end = "\r" if out.is_terminal else "\n"
            out.print(f"{done:,}/{total:,} cells, {rate:.2f} per second{left}      ", end=end)
            shown = done
        if done >= total:
            break
        time.sleep(POLL_SECONDS)
    out.print()
