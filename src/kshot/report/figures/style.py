"""One style for every figure, and its files: PDF and SVG with their fonts, PNG."""

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from kshot.files import write_atomically
from kshot.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart without colour vision too (after Okabe and Ito), in the order of their use.
COLOURS = ("#0b5cad", "#c2410c", "#0f7b52", "#8b2fa8", "#8a6a00", "#0e7490", "#b4235a", "#4b5563")
MARKERS = "osD^vP*X"
# Ten datasets in one figure, no colour twice: the eight above, a light green and a light brown.
DATASET_COLOURS = (*COLOURS, "#65a30d", "#d4a373")
# Inches of a label at the end of a line, and of title and axis around a panel; rounds in which labels move apart.
LABEL_HEIGHT, ABOVE_AND_BELOW, SPREADING = 0.13, 0.45, 60
TEXT_COLOUR, IMAGE_COLOUR, BLEND_COLOUR = COLOURS[1], COLOURS[0], COLOURS[2]


def styled() -> AbstractContextManager[None]:
    """The style of every figure."""
    from matplotlib import style

    return style.context(Path(__file__).with_name("kshot.mplstyle"))


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> "tuple[Figure, Any]":
    """A figure that no global state knows, so that nothing has to be closed, and its axes row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, squeeze=False, **options).ravel()


def line_style(index: int) -> dict[str, Any]:
    """Colour and mark of the index-th line of a panel."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def label_ends(axis: "Axes") -> None:
    """Write each line's name at its right end, moved up or down until no two names touch; call it when the limits of
    the axis stand."""
    figure: Any = axis.figure
    grid: Any = axis.get_subplotspec()
    low, high = axis.get_ylim()
    inches = figure.get_figheight() / grid.get_gridspec().nrows - ABOVE_AND_BELOW
    gap = (high - low) * LABEL_HEIGHT / inches
    ends = [float(np.asarray(line.get_ydata())[-1]) for line in axis.get_lines()]
    order = np.argsort(ends, kind="stable")
    places = spread_apart(np.array(ends)[order], gap)
    for line, place in zip([axis.get_lines()[i] for i in order], places, strict=True):
        words: dict[str, Any] = {"color": line.get_color(), "fontsize": 7, "va": "center"}
        axis.text(1.03, place, str(line.get_label()), transform=axis.get_yaxis_transform(), **words)


def spread_apart(places: Float[Array, " n"], gap: float) -> Float[Array, " n"]:
    """Rising places, moved until each is that far from the next."""
    places = places.astype(float)
    for _ in range(SPREADING):
        for i in range(1, len(places)):
            if (lacking := gap - (places[i] - places[i - 1])) > 0:
                places[i - 1] -= lacking / 2
                places[i] += lacking / 2
    return places


def write_figure(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """`name.pdf`, `name.svg` and `name.png`; no date inside, so the same records give the same bytes."""
    paths = []
    for kind, dated in (("pdf", "CreationDate"), ("svg", "Date"), ("png", "Software")):
        paths.append(folder / f"{name}.{kind}")
        save = partial(figure.savefig, format=kind, metadata={dated: None})
        write_atomically(paths[-1], save)
    return paths
