"""One style for every figure, and its files: PDF and SVG with their fonts, PNG."""

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kshot.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Told apart without colour vision too (after Okabe and Ito), in the order of their use.
COLOURS = ("#0b5cad", "#c2410c", "#0f7b52", "#8b2fa8", "#8a6a00", "#0e7490", "#b4235a", "#4b5563")
MARKERS = "osD^vP*X"
# One for each round of eight colours.
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (8, 3)), (0, (1, 4)))
# Ten datasets in one figure, no colour twice: the eight above, a light green and a light brown.
DATASET_COLOURS = (*COLOURS, "#65a30d", "#d4a373")
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
    """Of the index-th method: no two of 48 have the same colour, marker and dash. The first eight stand out."""
    turn, colour = divmod(index, len(COLOURS))
    later = {"linewidth": 0.7, "markersize": 2.5} if turn else {}
    return {
        "color": COLOURS[colour],
        "marker": MARKERS[(colour + turn) % len(MARKERS)],
        "linestyle": DASHES[turn % len(DASHES)],
        **later,
    }


def write_figure(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """`name.pdf`, `name.svg` and `name.png`; no date inside, so the same records give the same bytes."""
    paths = []
    for kind, dated in (("pdf", "CreationDate"), ("svg", "Date"), ("png", "Software")):
        paths.append(folder / f"{name}.{kind}")
        save = partial(figure.savefig, format=kind, metadata={dated: None})
        write_atomically(paths[-1], save)
    return paths
