"""`kshot status`: where a run stands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console, existing_records

if TYPE_CHECKING:
    from kshot.bench.status import RunStatus
    from kshot.bench.study import Study

POLL_SECONDS = 2.0


def status(
    records: Annotated[Path, typer.Argument(help="Records folder, or the study that filled it.")],
    watch: Annotated[bool, typer.Option("--watch", help="Stay and show rate and time left until done.")] = False,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Cells done and missing and the time left; records undefined and failed, with reasons."""
    from kshot.bench.status import added_methods, continued, run_status
    from kshot.bench.study import load_study, names_study

    folder = existing_records(records)
    if names_study(records):
        study, besides = continued(folder, load_study(records))
        retry = _retry(str(records), besides)
    else:
        study = None
        retry = f"{_retry('STUDY', added_methods(folder))} --records {folder}"
    if watch:
        _watch(folder, study)
    state = run_status(folder, study)
    _show(state, folder, retry, _time_left(folder, study, features) if state.missing else "")


def _time_left(folder: Path, study: "Study | None", features: Path) -> str:
    """By what the run's own records took on this machine; empty where they cannot tell."""
    from kshot.bench.plan import seconds_left
    from kshot.bench.records import Records
    from kshot.bench.work import find_work
    from kshot.data.store import Store
    from kshot.errors import KshotError
    from kshot.progress import human_seconds

    records = Records(folder)
    asked = study or records.study()
    if any(":" in spec.use for spec in asked.methods().values()):
        # Code that a folder names is not imported to tell the time.
        return ""
    try:
        work = find_work(asked, Store(features), records, must_be_stored=False)
        seconds = seconds_left(work, folder)
    except KshotError:
        return ""
    return f"about {human_seconds(seconds)} of one core left, by the records so far" if seconds else ""


def _retry(study: str, methods: list[str]) -> str:
    return " ".join(["kshot retry", study, *(f"--method {name}" for name in methods)])


def _show(found: "RunStatus", folder: Path, retry: str, time_left: str) -> None:
    from kshot.report.table import Table, count

    out = console()
    out.print(f"{found.study}, hash {found.hash}, in {folder}", markup=False)
    out.print(_cells(found))
    if time_left:
        out.print(time_left)
    kinds = ("ok", "undefined", "failed")
    rows = tuple((name, *(count(counts[kind]) for kind in kinds)) for name, counts in found.methods.items())
    out.print(Table("Records by status", ("method", *kinds), rows, ""))
    for name, reasons in found.reasons.items():
        for reason, times in reasons.most_common(3):
            out.print(f"{name}, {times}×: {reason}", markup=False)
    if found.missing:
        out.print("next: run the same `kshot run` command to compute what is missing")
    if any(counts["failed"] for counts in found.methods.values()):
        out.print(
            f"tracebacks in {folder / 'failures'}; repair the cause, then `{retry}`", markup=False, soft_wrap=True
        )


def _cells(found: "RunStatus") -> str:
    counts = f"{found.done:,} done, {found.missing:,} missing, {found.dropped:,} dropped (thin pool)"
    return f"{found.total:,} cells: {counts}"


def _watch(folder: Path, study: "Study | None") -> None:
    """Look at the folder again and again; the rate is what appeared since the watch began."""
    import time

    from kshot.bench.status import count_done
    from kshot.progress import human_seconds

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
