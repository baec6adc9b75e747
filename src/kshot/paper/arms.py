"""Records and probes of all arms side by side: named columns over cells, ready to be filtered and paired."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from kshot.errors import StudyError
from kshot.report.tables.stratum_probes import selected_alpha
from kshot.stats.panel import CELL, FACTS, Panel, panel
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

COOP, AUGMENTED, WITH_VIEWS, MAIN_PRECISION = "coop", "augmentation", "+views", "float32"
MATRIX = "matrix"


@dataclass(frozen=True)
class Observations:
    """Columns over keys. The panel's cells come first; probes of a stratum have shots 0 and seed −1, those of a shot
    count seed −1."""

    panel: Panel
    keys: Mapping[str, Array]
    probes: Mapping[str, Float[Array, " n"]]

    def column(self, name: str, measure: str = "accuracy") -> Float[Array, " n"]:
        """A method's accuracy, ratio or seconds; a probe's quantity; a fact of the cell. NaN where unknown."""
        if name in self.panel.methods:
            return self._of_cells(self._of_method(name, measure))
        if name in self.probes:
            return self.probes[name]
        if name in (*FACTS, "n_test"):
            return self._of_cells(getattr(self.panel, name).astype(float))
        if name == "cells":
            return self._of_cells(np.ones(len(self.panel.shots)))
        if name == "seconds of all methods":
            return self._of_cells(np.nansum(self.panel.fit_seconds + self.panel.score_seconds, axis=1))
        return np.full(len(self.keys["shots"]), np.nan)

    def moved(self, values: Float[Array, " n"], axis: str, to: str) -> Float[Array, " n"]:
        """For every row the value at the same key with one axis changed."""
        return look_up(
            values, self, [(*key[: CELL.index(axis)], to, *key[CELL.index(axis) + 1 :]) for key in self.rows()]
        )

    def rows(self) -> list[tuple]:
        return list(zip(*(self.keys[axis].tolist() for axis in CELL), strict=True))

    def balanced(self, keep: Bool[Array, " n"]) -> Bool[Array, " n"]:
        """Of the cells kept, those whose combination is present at every K."""
        cells = keep[: len(self.panel.shots)]
        kept = np.zeros(len(keep), bool)
        kept[np.flatnonzero(cells)] = self.panel.where(cells).present_at_every_shot_count()
        return kept

    def _of_cells(self, values: Float[Array, " m"]) -> Float[Array, " n"]:
        return np.append(values, np.full(len(self.keys["shots"]) - len(values), np.nan))

    def _of_method(self, method: str, measure: str) -> Float[Array, " m"]:
        if measure == "absent":
            return np.isnan(self.panel.column(method)).astype(float)
        if measure == "accuracy":
            return self.panel.column(method)
        if measure != "alpha":
            return self.panel.column(method, measure)
        return selected_alpha(self.panel, method)


@dataclass(frozen=True)
class Arms:
    """The matrix in the main precision, and the arms that have cells of the same names: CoOp's splits, the other
    precision."""

    sides: Mapping[str, Observations]


def look_up(values: Float[Array, " n"], at: Observations, keys: Sequence[tuple]) -> Float[Array, " m"]:
    known = dict(zip(at.rows(), values.tolist(), strict=True))
    return np.array([known.get(key, np.nan) for key in keys], float)


def gather(records: "Sequence[pa.Table]", probes: "Sequence[pa.Table]") -> Arms:
    """Join the records of all arms that describe the same cells; of a method recorded twice the first counts."""
    sides: dict[str, list[pa.Table]] = {}
    for table in records:
        name = table["study"][0].as_py()
        if table["dtype"][0].as_py() != MAIN_PRECISION:
            side = table["dtype"][0].as_py()
        elif name.startswith(COOP):
            side = COOP
        else:
            side = MATRIX
        sides.setdefault(side, []).append(_renamed(table) if name.startswith(AUGMENTED) else table)
    if MATRIX not in sides:
        raise StudyError(f"none of these records are in {MAIN_PRECISION} on the paper's splits. Run `kshot run paper`.")
    return Arms(
        {side: _observed(panel(joined(tables)), probes if side == MATRIX else ()) for side, tables in sides.items()}
    )


def joined(tables: "Sequence[pa.Table]") -> "pa.Table":
    """One table under the first study's name. Cells that were computed on other features do not compare."""
    import pyarrow as pa

    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables, promote_options="default")
    for name in ("study", "study_hash", "version"):
        first = whole[name][0].as_py()
        whole = whole.set_column(whole.schema.get_field_index(name), name, pa.array([first] * whole.num_rows))
    seen: set[tuple] = set()
    keep: list[bool] = []
    features: dict[tuple, dict[str, str]] = {}
    keys = zip(*(whole[axis].to_pylist() for axis in (*CELL, "method")), strict=True)
    for key, text in zip(keys, whole["feature_hashes"].to_pylist(), strict=True):
        hashes, known = json.loads(text), features.setdefault(key[:-1], {})
        # An arm may have parts of its own, such as augmented views.
        if any(known.get(part, digest) != digest for part, digest in hashes.items()):
            raise StudyError(
                f"{key[0]} with {key[1]} was computed on different features in two of these folders. Compare folders "
                "that share one feature store."
            )
        known.update(hashes)
        keep.append(key not in seen)
        seen.add(key)
    return whole.filter(pa.array(keep))


def _renamed(table: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    names = pa.array([name + WITH_VIEWS for name in table["method"].to_pylist()])
    return table.set_column(table.schema.get_field_index("method"), "method", names)


def _observed(cells: Panel, probes: "Sequence[pa.Table]") -> Observations:
    keys = list(zip(*(getattr(cells, axis).tolist() for axis in CELL), strict=True))
    place = {key: row for row, key in enumerate(keys)}
    entries: list[tuple[str, int, float]] = []
    for table in probes:
        columns = (table[name].to_pylist() for name in (*CELL, "quantity", "value"))
        for *key, quantity, value in zip(*columns, strict=True):
            entries.append((quantity, place.setdefault(tuple(key), len(place)), value))
    observed: dict[str, Array] = {}
    for quantity, row, value in entries:
        observed.setdefault(quantity, np.full(len(place), np.nan))[row] = value
    return Observations(
        cells, {axis: np.array(values) for axis, values in zip(CELL, zip(*place, strict=True), strict=True)}, observed
    )
