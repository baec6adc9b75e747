"""`kshot knob`: what is a method's knob worth?"""

from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console, own_modules


def knob(
    method: Annotated[
        str,
        typer.Argument(help="A method, or the start of its name (gda, tip, loo), or package.module:Class."),
    ],
    dataset: Annotated[str | None, typer.Option("--dataset", help="One dataset only.")] = None,
    tier: Annotated[str, typer.Option("--tier", help="Prompt tier of the text prototypes.")] = "dataset",
    shots: Annotated[
        list[int] | None, typer.Option("--shots", help="Repeatable; 2, 4 and 16 unless given.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Support draws to average over.")] = 3,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """The leave-one-out choice of a method's knob, its test-set oracle and the regret; the same by folds."""
    from rich.table import Table

    from kshot.bench.knobs import find_knob, knob_rows
    from kshot.features.store import Store

    own_modules()
    name = find_knob(method)
    table = Table(title=f"{name}: the knob by leave-one-out, and by test labels (a bound, not a method)")
    columns = ("dataset", "backbone", "K", "chosen", "accuracy", "oracle", "accuracy", "regret")
    for column in (*columns, "by folds", "regret"):
        table.add_column(column, justify="left" if column in ("dataset", "backbone") else "right")
    for row in knob_rows(Store(features), name, dataset, tier, shots or [2, 4, 16], seeds):
        table.add_row(*row.cells())
    console().print(table)
