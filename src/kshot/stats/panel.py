"""Records as a panel: one row per cell, one column per method, so that every comparison is paired."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from kshot.errors import StudyError
from kshot.stats.metrics import ACCURACY, Metric
from kshot.stats.selected import RATIO, ratio_of
from kshot.types import CELL as CELL
from kshot.types import IMPORTED, LABEL_FREE_EVIDENCE, Array

if TYPE_CHECKING:
    import pyarrow as pa

FACTS = ("lambda_js", "d2", "v", "share", "n_classes")
COLUMNS = (*CELL, *FACTS, "n_test")


@dataclass(frozen=True, slots=True)
class StudyPart:
    """The study of the records. `inputs` is a hash of their keys: it moves with a draw, a feature or a head that is
    another, and with nothing else. `versions` are those of kshot, `code` that of own methods by name; `only` names the
    part of the study that was chosen and is empty for all of it."""

    study: str
    inputs: str
    versions: tuple[str, ...]
    code: Mapping[str, str]
    dtype: str
    simulated: bool
    only: str

    @property
    def imported(self) -> bool:
        return IMPORTED in self.versions


@dataclass(frozen=True)
class Panel:
    """One row per cell, one column per method.

    `cells` holds the columns CELL, FACTS, n_test and has_text; each is an attribute too (`panel.dataset`). `row` is the
    number of a method's record in a cell, −1 where there is none. `measures` are numbers of the records and a NaN at
    the end: `value` is the metric, by default the accuracy in per cent, NaN where a method is undefined or failed;
    `ratio` is the fitted blending ratio, its mean where every class has its own.
    """

    cells: Shaped[Array, " n"]
    row: Int[Array, "n m"]
    measures: Mapping[str, Float[Array, " N"]]
    methods: tuple[str, ...]
    titles: dict[str, str]
    reference_points: frozenset[str]
    transductive: frozenset[str]
    records: "pa.Table"
    origin: StudyPart
    metric: Metric = ACCURACY

    def __len__(self) -> int:
        return len(self.cells)

    def __getattr__(self, name: str) -> Array:
        """A column of the cells, or a measure as a matrix of cells and methods."""
        if name in (*COLUMNS, "has_text"):
            return self.cells[name]
        if name in ("value", "ratio", "fit_seconds", "score_seconds"):
            return self.measures[name][self.row]
        raise AttributeError(name)

    def column(self, method: str, measure: str = "value") -> Float[Array, " n"]:
        """One method's column; all NaN where the records do not hold the method."""
        if method not in self.methods:
            return np.full(len(self), np.nan)
        return self.measures[measure][self.row[:, self.methods.index(method)]]

    def recorded(self, method: str, name: str) -> list[Any]:
        """A column of a method's records, one value per cell; None where there is no record."""
        import pyarrow as pa

        if method not in self.methods:
            return [None] * len(self)
        rows = self.row[:, self.methods.index(method)]
        return self.records[name].take(pa.array(rows, mask=rows < 0)).to_pylist()

    def selected(self, method: str) -> list[dict[str, Any]]:
        """What a method fitted in every cell."""
        return [json.loads(text) if text else {} for text in self.recorded(method, "selected")]

    def where(self, keep: Bool[Array, " n"]) -> "Panel":
        return replace(self, cells=self.cells[keep], row=self.row[keep])

    def by_metric(self, metric: Metric, values: Float[Array, " N"]) -> "Panel":
        """The same cells measured by another metric, whose values come in the order of the records."""
        return replace(self, measures={**self.measures, "value": _and_nan(metric.scale * values)}, metric=metric)

    def cell_keys(self, axes: Iterable[str] = CELL) -> list[tuple]:
        """The names of every cell on these axes."""
        return list(zip(*(self.cells[axis].tolist() for axis in axes), strict=True))

    def names(self, axis: str) -> list[str]:
        """The distinct names on an axis, sorted."""
        return sorted(set(self.cells[axis].tolist()))

    def free_methods(self) -> list[str]:
        """Methods that a deployed system could run on every picture as it comes."""
        return [m for m in self.methods if m not in self.reference_points | self.transductive]

    def with_all(self, methods: Iterable[str]) -> "Panel":
        """Cells in which all of these methods exist; methods that exist in no cell are ignored."""
        columns = [np.isfinite(self.column(method)) for method in methods]
        known = [column for column in columns if column.any()]
        return self.where(np.all(known, axis=0)) if known else self

    def with_text(self) -> "Panel":
        """Cells whose backbone has a text side; elsewhere no blend exists."""
        return self.where(self.has_text)

    def combinations(self) -> Int[Array, " n"]:
        """A number per (dataset, backbone, tier, profile)."""
        keys = np.stack([self.dataset, self.backbone, self.tier, self.profile], axis=1).astype(str)
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    def present_at_every_shot_count(self) -> Bool[Array, " n"]:
        """Cells whose combination exists at every K; otherwise cells that are missing would look like trends over K."""
        group = self.combinations()
        counts = np.zeros((group.max(initial=-1) + 1, len(np.unique(self.shots))), int)
        np.add.at(counts, (group, np.unique(self.shots, return_inverse=True)[1]), 1)
        return np.all(counts > 0, axis=1)[group]


def panel(table: "pa.Table", only: str = "") -> Panel:
    """Pivot a records table; records that do not compare are refused with the list of what differs."""
    if not table.num_rows:
        raise StudyError("there are no records to compare. Run `kshot run` first.")
    precisions = sorted(set(table["dtype"].to_pylist()))
    if len(precisions) > 1:
        raise StudyError(f"these records are of different precisions: {', '.join(precisions)}. Report one at a time.")
    columns = {name: _column(table, name) for name in COLUMNS}
    numbered = np.stack([np.unique(columns[name], return_inverse=True)[1] for name in CELL], axis=1)
    _, first, cell = np.unique(numbered, axis=0, return_index=True, return_inverse=True)
    method = table["method"].to_pylist()
    place = {name: index for index, name in enumerate(dict.fromkeys(method))}
    row = np.full((len(first), len(place)), -1)
    row[cell.reshape(-1), [place[name] for name in method]] = np.arange(table.num_rows)
    if np.count_nonzero(row >= 0) != table.num_rows:
        raise StudyError("some methods have two records for one cell.")
    accuracy = 100 * _column(table, "accuracy")
    seconds = {
        name: np.where(np.isfinite(accuracy), _column(table, name), np.nan) for name in ("fit_seconds", "score_seconds")
    }
    measures = {"value": accuracy, "ratio": _ratios(table["selected"].to_pylist()), **seconds}
    sees = {name: set(seen) for name, seen in zip(method, table["sees"].to_pylist(), strict=True)}
    cells = np.empty(len(first), [*((name, values.dtype) for name, values in columns.items()), ("has_text", bool)])
    for name, values in columns.items():
        cells[name] = values[first]
    cells["has_text"] = np.isfinite(cells["d2"])
    if not cells["has_text"].any():
        # Imported records have no d2; there, text shows in the methods that read it.
        read = np.isfinite(accuracy) & ["text" in sees[name] for name in method]
        cells["has_text"] = np.isin(np.arange(len(first)), cell.reshape(-1)[read])
    references = frozenset(name for name, seen in sees.items() if not seen <= LABEL_FREE_EVIDENCE)
    return Panel(
        cells=cells,
        row=row,
        measures={name: _and_nan(values) for name, values in measures.items()},
        methods=tuple(place),
        titles=_titles(dict(zip(method, table["title"].to_pylist(), strict=True))),
        reference_points=references,
        transductive=frozenset(name for name, seen in sees.items() if "queries" in seen and name not in references),
        records=table,
        origin=_origin(table, only),
    )


def _origin(table: "pa.Table", only: str) -> StudyPart:
    keys = "\n".join(sorted(filter(None, table["key"].to_pylist())))
    imported = IMPORTED in table["protocol"].unique().to_pylist()
    made = [json.loads(text)["kshot"] for text in table["made_by"].unique().to_pylist() if text]
    pairs = set(zip(table["method"].to_pylist(), table["recipe"].to_pylist(), strict=True))
    codes = {name: json.loads(text).get("code", "") for name, text in sorted(pairs) if text and '"code"' in text}
    return StudyPart(
        study=table["study"][0].as_py(),
        inputs=hashlib.sha256(keys.encode()).hexdigest()[:8],
        versions=(IMPORTED,) if imported else tuple(sorted(set(made))),
        code=codes,
        dtype=table["dtype"][0].as_py(),
        simulated=any(table["simulated"].to_pylist()),
        only=only,
    )


def _titles(recorded: dict[str, str]) -> dict[str, str]:
    """Titles for reports: an own method's loses its address (`module:Class`) unless two methods would share a title."""
    short = {name: title.removesuffix(f" ({name})") if ":" in name else title for name, title in recorded.items()}
    borne = Counter(short.values())
    return {name: title if borne[title] == 1 else recorded[name] for name, title in short.items()}


def _column(table: "pa.Table", name: str) -> Shaped[Array, " N"]:
    """Strings or numbers; NaN where a number is missing."""
    values = table[name].to_numpy()
    return values.astype(str) if values.dtype == object else values


def _and_nan(values: Float[Array, " N"]) -> Float[Array, " M"]:
    """The values and a NaN at the end, which row −1 selects."""
    return np.append(values, np.nan)


def _ratios(selected: Iterable[str | None]) -> Float[Array, " N"]:
    # Most records keep no ratio, and looking for its name is cheaper than reading them.
    return np.array([ratio_of(json.loads(text)) if text and f'"{RATIO}"' in text else np.nan for text in selected])
