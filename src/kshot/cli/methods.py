"""`kshot judge` and `kshot features knob`: what a method, and what its knob, is worth."""

from typing import Annotated

import numpy as np
import typer
from typer import Argument, Option

from kshot.bench.knobs import KnobRow, find_knob, knob_rows, knob_strata
from kshot.cli import shared
from kshot.cli.run import asked_study
from kshot.cli.shared import CORES, FEATURES, console
from kshot.data.store import Store
from kshot.errors import InputError
from kshot.progress import Progress
from kshot.report.table import Table, TableCell, count, interval, number
from kshot.runs import judge as judge_methods
from kshot.stats.bootstrap import cluster_mean


def judge(
    methods: Annotated[list[str], Argument(help="Methods, as package.module:Class or known names.")],
    study: shared.StudyArgument,
    engine: shared.EngineOption = "local",
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
    output: shared.ReportFolderOption = None,
    on: shared.OnOption = None,
    shots: shared.StudyShotsOption = None,
    min_residue: shared.MinResidueOption = None,
) -> None:
    """Run methods beside zero-shot, the oracle ratio, LOO blend, CLAP and LP++; answer five questions about each."""
    asked = asked_study(study, on, shots, min_residue)
    judgement = judge_methods(methods, asked, records=records, features=features, workers=workers, engine=engine)
    out = console()
    for table in judgement.tables:
        out.print(table)
    written = judgement.results.report(output, (judgement.tables, judgement.words))
    for detection in judgement.detections:
        out.print(str(detection), markup=False)
    out.print(f"wrote {written.page}", markup=False)
    if any(detection.differences for detection in judgement.detections):
        raise typer.Exit(1)


def knob(
    method: Annotated[str, Argument(help="A method, the start of its name (gda, tip), or package.module:Class.")],
    dataset: Annotated[str | None, Option("--dataset", help="One dataset only.")] = None,
    tier: Annotated[str, Option("--tier", help="Prompt tier of the text prototypes.")] = "dataset",
    shots: Annotated[list[int] | None, Option("--shots", min=1, help="Repeatable; 2, 4 and 16 unless given.")] = None,
    seeds: Annotated[int, Option("--seeds", min=1, help="Support draws to average over.")] = 3,
    features: shared.FeaturesOption = FEATURES,
) -> None:
    """Compare a knob's choice by leave-one-out, and by folds, with its test-set oracle, and print the regret."""
    name, store = find_knob(method), Store(features)
    strata, without_tier = knob_strata(store, name, dataset, tier)
    out, rows = console(), []
    with Progress("", pause=float("inf")) as progress:
        for row in knob_rows(store, name, strata, tier, shots or [2, 4, 16], seeds):
            rows.append(row)
            progress.advance(1, f"turning the knob of {name}: {row.dataset}, K = {row.shots} done")
    if not rows:
        given = ", ".join(map(str, shots or []))
        raise InputError(f"no stored dataset has pictures for K = {given} shots and a rest. Give fewer with --shots.")
    out.print(_by_dataset(name, rows))
    if any(worth.undecided for row in rows for worth in row.worths):
        out.print("* Every value did equally well there, so the first was taken (a fold of K = 2 has one shot).")
    if without_tier:
        out.print(f"left out, without tier {tier}: {', '.join('/'.join(where) for where in without_tier)}")
    if len({row.dataset for row in rows}) > 1:
        out.print(_on_average(rows))


def _by_dataset(name: str, rows: list[KnobRow]) -> Table:
    def cells(row: KnobRow) -> tuple[TableCell, ...]:
        chosen, oracle, folds = (row.values(which) for which in ("chosen", "oracle", "fold_chosen"))
        names = ("chosen_accuracy", "oracle_accuracy", "regret", "fold_regret")
        at_chosen, at_oracle, regret, fold_regret = (number(row.mean(which)) for which in names)
        figures = (chosen, at_chosen, oracle, at_oracle, regret, folds, fold_regret)
        return (row.dataset, row.backbone, count(row.shots), *figures)

    columns = ["dataset", "backbone", "K", "by leave-one-out", "accuracy", "oracle", "accuracy", "regret", "by folds"]
    return Table(
        title=f"{name}: the knob by leave-one-out, and by test labels (a bound, not a method)",
        columns=(*columns, "regret"),
        rows=tuple(map(cells, rows)),
        caption="Regret: accuracy at the oracle's value minus accuracy at the chosen one.",
    )


def _on_average(rows: list[KnobRow]) -> Table:
    """Return the mean regret at each K, with intervals over datasets."""
    shown = []
    for backbone, shots in sorted({(row.backbone, row.shots) for row in rows}):
        here = [row for row in rows if (row.backbone, row.shots) == (backbone, shots)]
        names = np.array([row.dataset for row in here])
        regrets = [np.array([row.mean(which) for row in here]) for which in ("regret", "fold_regret")]
        figures = (interval(cluster_mean(regret, names), 1, sign=False) for regret in regrets)
        shown.append((backbone, count(shots), count(len(here)), *figures))
    columns = ("backbone", "K", "datasets", "by leave-one-out", "by folds")
    caption = "95 % Student-t intervals over datasets."
    return Table("Mean regret in points", columns, tuple(shown), caption)
