"""Records and probes of all arms of the paper as named columns over cells."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.errors import StudyError
from kshot.stats.panel import CELL, FACTS, Panel, panel
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

COOP, AUGMENTED, WITH_VIEWS, MAIN_PRECISION = "coop", "augmentation", "+views", "float32"
MATRIX = "matrix"


@dataclass(frozen=True)
class Observations:
    """Columns over keys: first the panel's cells, then probes of a stratum (shots 0, seed −1) or of all draws of a shot
    count (seed −1)."""

    panel: Panel
    keys: Mapping[str, Array]
    probes: Mapping[str, Float[Array, " n"]]
    made: dict[tuple[str, str], Float[Array, " n"]] = field(default_factory=dict, repr=False, compare=False)

    def column(self, name: str, measure: str = "accuracy") -> Float[Array, " n"]:
        """A method's accuracy, ratio or seconds; a probe's quantity; a fact of the cell. NaN where unknown."""
        if (name, measure) not in self.made:
            self.made[name, measure] = self._column(name, measure)
        return self.made[name, measure]

    def _column(self, name: str, measure: str) -> Float[Array, " n"]:
        if name in self.panel.methods and measure == "absent":
            return self._of_cells(np.isnan(self.panel.column(name)).astype(float))
        if name in self.panel.methods:
            return self._of_cells(self.panel.column(name, "value" if measure == "accuracy" else measure))
        if name in self.probes:
            return self.probes[name]
        if name in (*FACTS, "n_test"):
            return self._of_cells(getattr(self.panel, name).astype(float))
        if name == "cells":
            return self._of_cells(np.ones(len(self.panel.shots)))
        if name == "seconds of all methods":
            return self._of_cells(np.nansum(self.panel.fit_seconds + self.panel.score_seconds, axis=1))
        return np.full(len(self), np.nan)

    def __len__(self) -> int:
        return len(self.keys["shots"])

    def moved(self, axis: str, to: str) -> Int[Array, " n"]:
        """The row of the same key with one axis changed; −1 where there is none."""
        place = CELL.index(axis)
        return np.array([self.places.get((*key[:place], to, *key[place + 1 :]), -1) for key in self.rows])

    @cached_property
    def rows(self) -> list[tuple]:
        return list(zip(*(self.keys[axis].tolist() for axis in CELL), strict=True))

    @cached_property
    def places(self) -> dict[tuple, int]:
        return {key: row for row, key in enumerate(self.rows)}

    @cached_property
    def names(self) -> dict[str, list]:
        """The values of every axis."""
        return {axis: np.unique(self.keys[axis]).tolist() for axis in CELL}

    @cached_property
    def codes(self) -> dict[str, Int[Array, " n"]]:
        """The number of each row's value in `names`."""
        return {axis: np.unique(self.keys[axis], return_inverse=True)[1].reshape(-1) for axis in CELL}

    @cached_property
    def cell_shape(self) -> Int[Array, " 4"]:
        return np.array([len(self.names[axis]) for axis in CELL[:4]])

    @cached_property
    def cell_codes(self) -> Int[Array, " n"]:
        """One number per (dataset, backbone, tier, shots)."""
        return np.ravel_multi_index([self.codes[axis] for axis in CELL[:4]], tuple(self.cell_shape))

    def where(self, keep: Bool[Array, " n"]) -> "Observations":
        """These rows only."""
        keys = {axis: values[keep] for axis, values in self.keys.items()}
        probes = {name: values[keep] for name, values in self.probes.items()}
        return Observations(self.panel.where(keep[: len(self.panel)]), keys, probes)

    def on(self, axis: str, values: Iterable) -> Bool[Array, " n"]:
        """Rows with one of these values."""
        known = np.isin(self.names[axis], list(values))
        return known[self.codes[axis]]

    def balanced(self, keep: Bool[Array, " n"]) -> Bool[Array, " n"]:
        """Kept cells whose (dataset, backbone, tier) is present at every K."""
        cells = keep[: len(self.panel.shots)]
        kept = np.zeros(len(keep), bool)
        kept[np.flatnonzero(cells)] = self.panel.where(cells).present_at_every_shot_count()
        return kept

    def _of_cells(self, values: Float[Array, " m"]) -> Float[Array, " n"]:
        return np.append(values, np.full(len(self) - len(values), np.nan))


# Observations of the matrix in the main precision, of CoOp's splits, and of the other precision.
Arms: TypeAlias = Mapping[str, Observations]


def side_by_side(ours: Arms, theirs: Arms) -> tuple[Arms, Arms]:
    """Both runs over the strata and shot counts that both have: a mean over others would be another mean."""
    kept: tuple[dict[str, Observations], dict[str, Observations]] = (dict(ours), dict(theirs))
    for name in ours.keys() & theirs.keys():
        keys = [run[name].panel.cell_keys(CELL[:4]) for run in kept]
        both = {*keys[0]} & {*keys[1]}
        for run, cells in zip(kept, keys, strict=True):
            keep = np.ones(len(run[name]), bool)
            keep[: len(cells)] = [cell in both for cell in cells]
            run[name] = run[name] if keep.all() else run[name].where(keep)
    return kept


def absent(ours: Observations, theirs: Observations) -> list[str]:
    """What of the other run's this one lacks: names of datasets, encoders, tiers, shot counts, draws and methods, and
    methods under such a name."""
    words = {"shots": "K = {}", "seed": "draw {}"}
    lost, beside = [], []
    # As many draws under other numbers are no lack: draws are exchanged.
    draws = [len(np.unique(run.panel.cells["seed"])) for run in (ours, theirs)]
    for axis in CELL[:5] if draws[0] < draws[1] else CELL[:4]:
        for name in np.unique(theirs.panel.cells[axis]).tolist():
            said = words.get(axis, "{}").format(name)
            here, there = (run.panel.where(run.panel.cells[axis] == name) for run in (ours, theirs))
            if not len(here):
                lost.append(said)
                continue
            known = [{m for m in run.methods if np.isfinite(run.column(m)).any()} for run in (there, here)]
            beside += [f"{m} with {said}" for m in ours.panel.methods if m in known[0] - known[1]]
    lost += [method for method in theirs.panel.methods if method not in ours.panel.methods]
    return lost + [one for one in beside if one.partition(" with ")[0] not in lost]


def look_up(values: Float[Array, " n"], at: Observations, keys: Sequence[tuple]) -> Float[Array, " m"]:
    """The values at these keys; NaN where there are none."""
    place = np.array([at.places.get(key, -1) for key in keys])
    return np.where(place >= 0, values[place], np.nan)


def gather(records: "Sequence[pa.Table]", probes: "Sequence[pa.Table]") -> Arms:
    """Join the records of all arms that describe the same cells; of a method recorded twice the first counts."""
    arms: dict[str, list[pa.Table]] = {}
    for table in records:
        study, dtype = table["study"][0].as_py(), table["dtype"][0].as_py()
        arm = dtype if dtype != MAIN_PRECISION else COOP if study.startswith(COOP) else MATRIX
        arms.setdefault(arm, []).append(_renamed(table) if study.startswith(AUGMENTED) else table)
    if MATRIX not in arms:
        raise StudyError(f"none of these records are in {MAIN_PRECISION} on the paper's splits. Run `kshot run paper`.")
    return {arm: _observed(panel(joined(tables)), probes if arm == MATRIX else ()) for arm, tables in arms.items()}


def joined(tables: "Sequence[pa.Table]") -> "pa.Table":
    """One table under the first study's name; refused where two studies computed a cell on different features."""
    import pyarrow as pa

    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables, promote_options="default")
    first = whole["study"][0].as_py()
    whole = whole.set_column(whole.schema.get_field_index("study"), "study", pa.array([first] * whole.num_rows))
    seen: set[tuple] = set()
    keep: list[bool] = []
    features: dict[tuple, dict[str, str]] = {}
    keys = zip(*(whole[axis].to_pylist() for axis in (*CELL, "method")), strict=True)
    for key, text in zip(keys, whole["features"].to_pylist(), strict=True):
        hashes, known = json.loads(text or "{}"), features.setdefault(key[:-1], {})
        # An arm may have parts of its own, such as augmented views.
        if any(known.get(part, digest) != digest for part, digest in hashes.items()):
            raise StudyError(
                f"{key[0]} with {key[1]} was computed on different features in two of these studies. Run them again on "
                "one feature store."
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
    cells = replace(cells, measures={**cells.measures, "alpha": _alphas(cells.records["selected"].to_pylist())})
    of_cells = zip(*(getattr(cells, axis).tolist() for axis in CELL), strict=True)
    place = {key: row for row, key in enumerate(of_cells)}
    found = [row for table in probes for row in table.select([*CELL, "quantity", "value"]).to_pylist()]
    rows = [place.setdefault(tuple(row[axis] for axis in CELL), len(place)) for row in found]
    columns: dict[str, Array] = {}
    for row, probe in zip(rows, found, strict=True):
        columns.setdefault(probe["quantity"], np.full(len(place), np.nan))[row] = probe["value"]
    keys = {axis: np.array(values) for axis, values in zip(CELL, zip(*place, strict=True), strict=True)}
    return Observations(cells, keys, columns)


def _alphas(selected: Iterable[str | None]) -> Float[Array, " N"]:
    """The cache weight that each record chose, NaN where it chose none; and a NaN at the end, as every measure has."""
    chosen = [json.loads(text).get("alpha", np.nan) if text and '"alpha"' in text else np.nan for text in selected]
    return np.array([*(a if isinstance(a, int | float) else np.nan for a in chosen), np.nan], float)
