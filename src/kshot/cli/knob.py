"""`kshot knob`: what is a method's knob worth?"""

from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console

if TYPE_CHECKING:
    from kshot.bench.knobs import KnobRow
    from kshot.report.table import Table, TableCell


def knob(
    method: Annotated[
        str, typer.Argument(help="A method, or the start of its name (gda, tip, loo), or package.module:Class.")
    ],
    dataset: Annotated[str | None, typer.Option("--dataset", help="One dataset only.")] = None,
    tier: Annotated[str, typer.Option("--tier", help="Prompt tier of the text prototypes.")] = "dataset",
    shots: Annotated[
        list[int] | None, typer.Option("--shots", min=1, help="Repeatable; 2, 4 and 16 unless given.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Support draws to average over.")] = 3,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """A method's knob: its leave-one-out choice, its test-set oracle and the regret; the same by folds."""
    from kshot.bench.knobs import find_knob, knob_rows, knob_strata
    from kshot.data.store import Store
    from kshot.errors import InputError
    from kshot.progress import Progress

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


def _by_dataset(name: str, rows: "list[KnobRow]") -> "Table":
    from kshot.report.table import Table, count, number

    def cells(row: "KnobRow") -> "tuple[TableCell, ...]":
        chosen, oracle, folds = (row.values(which) for which in ("chosen", "oracle", "fold_chosen"))
        names = ("chosen_accuracy", "oracle_accuracy", "regret", "fold_regret")
        at_chosen, at_oracle, regret, fold_regret = (number(row.mean(which)) for which in names)
        figures = (chosen, at_chosen, oracle, at_oracle, regret, folds, fold_regret)
        return (row.dataset, row.backbone, count(row.shots), *figures)

    return Table(
        title=f"{name}: the knob by leave-one-out, and by test labels (a bound, not a method)",
        columns=(
            *("dataset", "backbone", "K", "by leave-one-out", "accuracy"),
            *("oracle", "accuracy", "regret", "by folds", "regret"),
        ),
        rows=tuple(map(cells, rows)),
        caption="Regret: accuracy at the oracle's value minus accuracy at the chosen one.",
    )


def _on_average(rows: "list[KnobRow]") -> "Table":
    """Regret at each K over the datasets, with intervals that take datasets as the unit."""
    import numpy as np

    from kshot.report.table import Table, count, interval
    from kshot.stats.bootstrap import cluster_mean

    shown = []
    for backbone, shots in sorted({(row.backbone, row.shots) for row in rows}):
        here = [row for row in rows if (row.backbone, row.shots) == (backbone, shots)]
        names = np.array([row.dataset for row in here])
        regrets = (
            cluster_mean(np.array([row.mean(which) for row in here]), names) for which in ("regret", "fold_regret")
        )
        figures = (interval(regret, 1, sign=False) for regret in regrets)
        shown.append((backbone, count(shots), count(len(here)), *figures))
    columns = ("backbone", "K", "datasets", "by leave-one-out", "by folds")
    caption = "95 % Student-t intervals over datasets."
    return Table("Mean regret in points", columns, tuple(shown), caption)
