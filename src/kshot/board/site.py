"""`kshot board build`: the board as static pages, from kept records of kshot's own heads and from submissions."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kshot.bench.records import Records, metric_values
from kshot.bench.release import write_release
from kshot.bench.work import check_stored
from kshot.board.check import TABLES
from kshot.board.rules import Board, open_board
from kshot.board.submission import Submission, read_submission
from kshot.board.tables import Hits, bounded_memory, copied_from, hits_of, records_table
from kshot.board.verdict import REFUSED, VERIFIED, BoardVerdict, judge_folder, kept_hits, read_verdict, visible
from kshot.data.store import Store
from kshot.errors import KshotError
from kshot.files import safe_name, write_text
from kshot.report.context import Context, EntryMark
from kshot.report.notes import provenance
from kshot.report.regimes import regime_table
from kshot.report.slices import CLAP, ORACLE, ZERO_SHOT, primary
from kshot.report.table import Table, count, number
from kshot.report.tables import make_table
from kshot.report.verdict import verdict
from kshot.report.write import page, render
from kshot.results import load_records
from kshot.stats.metrics import ACCURACY, METRICS
from kshot.stats.panel import Panel, panel

if TYPE_CHECKING:
    import pyarrow as pa

OWN = "kshot"
COMPANIONS = (ZERO_SHOT, CLAP, ORACLE)
# The page's tables by regime show so many heads; the filters show all.
MOST_ROWS = 50
# Sorts after every date.
LATER = "~"


@dataclass(frozen=True)
class Accepted:
    """An entry of the board: its submission, the verdict on it, its records and its metrics by name."""

    submission: Submission
    verdict: BoardVerdict
    records: "pa.Table"
    metrics: Mapping[str, np.ndarray]

    @property
    def title(self) -> str:
        return self.submission.about.name


@dataclass(frozen=True)
class BuiltBoard:
    """What was built: the page, the entries by their status, and why others were left out."""

    page: Path
    entries: Mapping[str, str]
    left_out: Mapping[str, str]


def build(records: Path, submissions: Path, verdicts: Path, output: Path, features: Path) -> BuiltBoard:
    """Write index.html, and a page and an archive for each accepted submission."""
    owner = Records(records)
    check_stored(owner, Store(features))
    board = open_board(owner.study(), features)
    accepted, left_out = gather(board, records, submissions, verdicts)
    results = load_records(records, features=features)
    own_metrics = {
        key: found.measures["value"][:-1] / METRICS[key].scale
        for key, found in results.by_metric.items()
        if key in METRICS
    }
    table, metrics = _joined(results.records, own_metrics, accepted)
    found = panel(table)
    marks = {
        entry.submission.name: EntryMark(entry.verdict.verdict, f"entries/{entry.submission.name}/index.html")
        for entry in accepted
    }
    known = {key: values for key, values in metrics.items() if np.isfinite(values).any()}
    context = replace(
        results.page_context(),
        entries={method: marks.get(method, EntryMark(OWN)) for method in found.methods},
        measured={ACCURACY.key: found, **{key: found.by_metric(METRICS[key], v) for key, v in known.items()}},
    )
    for entry in accepted:
        _write_entry(entry, found, context, output / "entries" / entry.submission.name)
    words = _summary(results.panel, accepted, left_out)
    write_text(output / "index.html", board_page(found, context, words, left_out))
    return BuiltBoard(output / "index.html", {name: mark.status for name, mark in marks.items()}, left_out)


def gather(board: Board, records: Path, submissions: Path, verdicts: Path) -> tuple[list[Accepted], dict[str, str]]:
    """The submissions that hold, the first verified first, and for every other folder the reason."""
    accepted: list[Accepted] = []
    left_out: dict[str, str] = {}
    before = kept_hits([records])
    waiting: list[tuple[str, date, Submission, BoardVerdict | None]] = []
    for folder in sorted(path for path in submissions.iterdir() if path.is_dir()) if submissions.is_dir() else ():
        try:
            one = read_submission(folder)
        except KshotError as error:
            left_out[visible(folder.name)] = visible(str(error))
            continue
        verdict = read_verdict(verdicts / f"{one.name}.json")
        verdict = None if verdict is None or verdict.digest != one.digest else verdict
        # Who came first is what kept verdicts say; the date in about.toml is its author's word.
        waiting.append((verdict.date if verdict else LATER, one.about.date, one, verdict))
    for *_, one, verdict in sorted(waiting, key=lambda each: (*each[:2], each[2].name)):
        try:
            entry = _accept(one, board, verdict, before)
        except KshotError as error:
            left_out[one.name] = visible(str(error))
        else:
            accepted.append(entry)
            before[one.name] = hits_of(entry.records)
    return accepted, left_out


def _accept(submission: Submission, board: Board, verdict: BoardVerdict | None, before: Mapping[str, Hits]) -> Accepted:
    """Where no verdict on these very files is kept, the submission is checked now, without running it."""
    name = safe_name("submission", submission.name)
    if submission.entry.board != board.hash:
        raise KshotError(f"it belongs to another board ({submission.entry.study}, {submission.entry.board[:16]}).")
    if name in before:
        raise KshotError("a head of kshot, or an older entry, has that name.")
    verdict = verdict or judge_folder(submission.folder, board.features, board.base)
    if verdict.verdict == REFUSED:
        raise KshotError("; ".join(verdict.reasons[:3]))
    with bounded_memory():
        table = records_table(submission, board)
        for reason in copied_from(hits_of(table), before):
            raise KshotError(reason)
        functions = {key: metric.value for key, metric in METRICS.items() if metric is not ACCURACY}
        return Accepted(submission, verdict, table, metric_values(Records(submission.records), table, functions))


def _joined(
    own: "pa.Table", own_metrics: Mapping[str, np.ndarray], accepted: list[Accepted]
) -> tuple["pa.Table", dict[str, np.ndarray]]:
    """All records as those of one study: every entry under its folder's name, with the title of its about.toml."""
    import pyarrow as pa

    titles = [_same(title) for title in (*(one.title for one in accepted), *own["title"].unique().to_pylist())]
    tables = [own]
    for entry in accepted:
        name = entry.submission.name
        title = entry.title if titles.count(_same(entry.title)) == 1 else f"{entry.title} ({name})"
        # Wherever a figure stands, also in the verdict of the page.
        title += "" if entry.verdict.verdict == VERIFIED else f" ({entry.verdict.verdict})"
        tables.append(_with(entry.records, method=name, title=title))
    joined = pa.concat_tables(tables)
    versions = ", ".join(sorted(set(joined["version"].to_pylist())))
    joined = _with(joined, version=versions, study_hash=own["study_hash"][0].as_py())
    unknown = np.full(len(own), np.nan)
    metrics = {
        key: np.concatenate([own_metrics.get(key, unknown), *(entry.metrics[key] for entry in accepted)])
        for key in METRICS
        if key != ACCURACY.key
    }
    return joined, metrics


def _same(title: str) -> str:
    """The title without spaces and case: titles that look alike are the same."""
    return "".join(title.casefold().split())


def _with(table: "pa.Table", **columns: str) -> "pa.Table":
    """The table with the same word in all rows of these columns."""
    import pyarrow as pa

    for name, word in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array([word] * len(table), pa.string()))
    return table


def _summary(own: Panel, accepted: list[Accepted], left_out: Mapping[str, str]) -> str:
    verified = sum(entry.verdict.verdict == VERIFIED for entry in accepted)
    return (
        f"{len(own.methods)} heads of kshot and {len(accepted)} entries: {verified} verified (random cells were run "
        f"again without test labels), {len(accepted) - verified} declared (records checked, nothing run again), "
        f"{len(left_out)} refused."
    )


def board_page(found: Panel, context: Context, words: str, left_out: Mapping[str, str]) -> str:
    """The report's page about all entries; `words` stand in front of its verdict."""
    baseline = ORACLE if ORACLE in found.methods else found.methods[0]
    tables = [make_table(key, found, context) for key in TABLES]
    rows = tuple((name, reason) for name, reason in left_out.items())
    refused = Table("Refused, and why", ("submission", "reason"), rows, "They count in no figure.", key="refused")
    tables += [regime_table(found, baseline, MOST_ROWS), *([refused] if rows else [])]
    return page(found, tables, context, [words], verdict(found))


def _write_entry(entry: Accepted, found: Panel, context: Context, folder: Path) -> None:
    """The entry's own page, and its submission as one file."""
    name = entry.submission.name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(entry.submission.folder / "about.toml", folder)
    archive = folder / f"{name}.tar"
    write_release([entry.submission.folder], archive)
    seed = "" if entry.verdict.seed is None else f" --seed {entry.verdict.seed}"
    unpack = f"kshot records unpack {archive.name} submissions"
    check = f"kshot board check submissions/{name} --recompute {len(entry.verdict.cells) or 20}{seed}"
    beside = [method for method in (name, *COMPANIONS) if method in found.methods]
    chosen = found.records.filter([method in beside for method in found.records["method"].to_pylist()])
    few = panel(chosen)
    text = render(
        study=found.titles[name],
        provenance=f"{entry.verdict.verdict}, {entry.verdict.date}. {provenance(found)}",
        about=entry.submission.about.answers() | {"Software": _versions(entry.submission.entry.environment)},
        checked=_how_checked(entry.verdict),
        download=archive.name,
        commands=f"{unpack}\n{check}",
        tables=[by_dataset(few, name), *(make_table(key, few, context) for key in ("leaderboard", "per_dataset"))],
    )
    write_text(folder / "index.html", text)


def by_dataset(found: Panel, method: str) -> Table:
    """Mean accuracy of one method in every dataset at every K."""
    shown = primary(found)
    shots = [int(k) for k in np.unique(shown.shots)]
    rows = []
    for dataset in shown.names("dataset"):
        own = shown.where(shown.dataset == dataset)
        means = [float(own.column(method)[own.shots == k].mean()) for k in shots]
        rows.append((dataset, *(number(mean) for mean in means), count(len(own))))
    return Table(
        title=f"{found.titles[method]}: mean accuracy (%) by dataset and shots",
        columns=("dataset", *(f"K={k}" for k in shots), "cells"),
        rows=tuple(rows),
        caption=f"Means over seeds, tier {', '.join(sorted(set(shown.tier.tolist())))}.",
        key="by-dataset",
    )


def _versions(of: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in of.items())


def _how_checked(verdict: BoardVerdict) -> str:
    if verdict.verdict != VERIFIED:
        return f"Declared: form, hashes, shots and arithmetic were checked on {verdict.date}; nothing was run again."
    return (
        f"Verified on {verdict.date}: {len(verdict.cells)} cells, drawn with seed {verdict.seed}, were run again from "
        f"its wheel, without test labels, network or files. The answers are the same ({_versions(verdict.versions)})."
    )
