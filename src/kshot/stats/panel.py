"""Records as a panel: one row per cell, one column per method, so that every comparison is paired."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from kshot.errors import StudyError
from kshot.stats.metrics import ACCURACY, Metric
from kshot.stats.selected import RATIO, ratio_of
from kshot.types import LABEL_FREE_EVIDENCE, Array

if TYPE_CHECKING:
    import pyarrow as pa

CELL = ("dataset", "backbone", "tier", "shots", "seed", "profile")
FACTS = ("lambda_js", "d2", "v", "share", "n_classes")
MEASURES = ("value", "ratio", "fit_seconds", "score_seconds")
# What must be the same in all records that are compared, and how it is called.
ONE_OF = {"study_hash": "studies", "version": "versions of kshot", "dtype": "precisions"}


@dataclass(frozen=True)
class Panel:
    """Values of a metric, NaN where a method is undefined, failed or absent; `row` is −1 where absent. Unless another
    was asked for, the metric is the accuracy in per cent.

    `ratio` is the fitted blending ratio (the mean over classes where each has its own); `only` says which part of
    a study this is, and is empty for all of it.
    """

    dataset: Shaped[Array, " n"]
    backbone: Shaped[Array, " n"]
    tier: Shaped[Array, " n"]
    shots: Int[Array, " n"]
    seed: Int[Array, " n"]
    profile: Shaped[Array, " n"]
    lambda_js: Float[Array, " n"]
    d2: Float[Array, " n"]
    v: Float[Array, " n"]
    share: Float[Array, " n"]
    n_classes: Float[Array, " n"]
    n_test: Int[Array, " n"]
    value: Float[Array, "n m"]
    ratio: Float[Array, "n m"]
    fit_seconds: Float[Array, "n m"]
    score_seconds: Float[Array, "n m"]
    row: Int[Array, "n m"]
    methods: tuple[str, ...]
    titles: dict[str, str]
    reference_points: frozenset[str]
    transductive: frozenset[str]
    study: str
    study_hash: str
    version: str
    dtype: str
    simulated: bool
    only: str
    records: "pa.Table"
    metric: Metric

    def column(self, method: str, measure: str = "value") -> Float[Array, " n"]:
        """One method's column; all NaN where the records do not hold the method."""
        if method not in self.methods:
            return np.full(len(self.shots), np.nan)
        return getattr(self, measure)[:, self.methods.index(method)]

    def where(self, keep: Bool[Array, " n"]) -> "Panel":
        axes = (*CELL, *FACTS, *MEASURES, "n_test", "row")
        return replace(self, **{name: getattr(self, name)[keep] for name in axes})

    def by_metric(self, metric: Metric, values: Float[Array, " N"]) -> "Panel":
        """The same cells measured by another metric, whose values come in the order of the records."""
        return replace(self, value=metric.scale * np.append(values, np.nan)[self.row], metric=metric)

    def free_methods(self) -> list[str]:
        """Methods that a deployed system could run on every picture as it comes."""
        apart = self.reference_points | self.transductive
        return [method for method in self.methods if method not in apart]

    def with_all(self, methods: Iterable[str]) -> "Panel":
        """Cells in which each of these methods exists; one that exists in no cell at all is no condition."""
        columns = [np.isfinite(self.column(method)) for method in methods]
        known = [column for column in columns if column.any()]
        return self.where(np.all(known, axis=0)) if known else self

    def with_text(self) -> "Panel":
        """Cells whose backbone has a text side; elsewhere no blend exists."""
        return self.where(np.isfinite(self.d2))

    def combinations(self) -> Int[Array, " n"]:
        """A number per (dataset, backbone, tier, profile)."""
        keys = np.stack([self.dataset, self.backbone, self.tier, self.profile], axis=1).astype(str)
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    def present_at_every_shot_count(self) -> Bool[Array, " n"]:
        """The combination guard: without it, dropped cells masquerade as trends over K."""
        group = self.combinations()
        counts = np.zeros((group.max(initial=-1) + 1, len(np.unique(self.shots))), int)
        np.add.at(counts, (group, np.unique(self.shots, return_inverse=True)[1]), 1)
        return np.all(counts > 0, axis=1)[group]


def panel(table: "pa.Table", only: str = "") -> Panel:
    """Pivot a records table; records that do not compare are refused with the list of what differs."""
    if not table.num_rows:
        raise StudyError("there are no records to compare. Run `kshot run` first.")
    _refuse_mixtures(table)
    columns = {name: _strings_or_numbers(table, name) for name in CELL}
    numbered = np.stack([np.unique(values, return_inverse=True)[1].reshape(-1) for values in columns.values()], axis=1)
    _, first, cell = np.unique(numbered, axis=0, return_index=True, return_inverse=True)
    cell = cell.reshape(-1)
    method = _strings_or_numbers(table, "method")
    methods = tuple(dict.fromkeys(method.tolist()))
    place = {name: index for index, name in enumerate(methods)}
    column = np.array([place[name] for name in method.tolist()])
    row = np.full((len(first), len(methods)), -1)
    row[cell, column] = np.arange(table.num_rows)
    if np.count_nonzero(row >= 0) != table.num_rows:
        raise StudyError("some methods have two records for one cell. Report one records folder at a time.")
    accuracy = 100 * _numbers(table, "accuracy")
    defined = np.isfinite(accuracy)
    measures = {
        "value": accuracy,
        "ratio": _ratios(table["selected"].to_pylist()),
        "fit_seconds": np.where(defined, _numbers(table, "fit_seconds"), np.nan),
        "score_seconds": np.where(defined, _numbers(table, "score_seconds"), np.nan),
    }
    titles = _titles(dict(zip(method.tolist(), table["title"].to_pylist(), strict=True)))
    sees = dict(zip(method.tolist(), table["sees"].to_pylist(), strict=True))
    return Panel(
        **{name: values[first] for name, values in columns.items()},
        **{name: _numbers(table, name)[first] for name in FACTS},
        **{name: np.append(values, np.nan)[row] for name, values in measures.items()},
        n_test=_strings_or_numbers(table, "n_test")[first],
        row=row,
        methods=methods,
        titles=titles,
        reference_points=frozenset(name for name, seen in sees.items() if not set(seen) <= LABEL_FREE_EVIDENCE),
        transductive=frozenset(
            name for name, seen in sees.items() if "queries" in seen and set(seen) <= LABEL_FREE_EVIDENCE
        ),
        study=table["study"][0].as_py(),
        study_hash=table["study_hash"][0].as_py(),
        version=table["version"][0].as_py(),
        dtype=table["dtype"][0].as_py(),
        simulated=any(table["simulated"].to_pylist()),
        only=only,
        records=table,
        metric=ACCURACY,
    )


def _titles(recorded: dict[str, str]) -> dict[str, str]:
    """As recorded, without the address (`module:Class`) of an own method where the rest of its title is its alone."""
    short = {name: title.removesuffix(f" ({name})") if ":" in name else title for name, title in recorded.items()}
    borne = Counter(short.values())
    return {name: title if borne[title] == 1 else recorded[name] for name, title in short.items()}


def _refuse_mixtures(table: "pa.Table") -> None:
    for name, called in ONE_OF.items():
        values = table[name].to_pylist()
        found = set(zip(table["study"].to_pylist(), values, strict=True)) if name == "study_hash" else set(values)
        if len(found) > 1:
            listed = ", ".join(sorted(" ".join(v) if isinstance(v, tuple) else str(v) for v in found))
            raise StudyError(f"these records come from different {called}: {listed}. Report one at a time.")

    made = set(zip(table["method"].to_pylist(), table["code"].to_pylist(), strict=True))
    several = [method for method, times in Counter(method for method, _ in made).items() if times > 1]
    if several:
        raise StudyError(
            f"records of {', '.join(several)} were made by different versions of its code. Run the same `kshot run` "
            "again, which computes the older ones anew."
        )


def _strings_or_numbers(table: "pa.Table", name: str) -> Shaped[Array, " N"]:
    return np.asarray(table[name].to_pylist())


def _numbers(table: "pa.Table", name: str) -> Float[Array, " N"]:
    return np.asarray([np.nan if v is None else v for v in table[name].to_pylist()], dtype=float)


def _ratios(selected: Iterable[str | None]) -> Float[Array, " N"]:
    # Most records keep no ratio, and looking for its name is cheaper than reading them.
    return np.array([ratio_of(json.loads(text)) if text and f'"{RATIO}"' in text else np.nan for text in selected])
