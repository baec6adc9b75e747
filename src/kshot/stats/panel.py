"""Records as a panel: one row per cell, one column per method, so that every comparison is paired."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from kshot.errors import StudyError
from kshot.types import FREE_EVIDENCE, Array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Panel:
    """Accuracies in per cent, NaN where a method is undefined, failed or absent."""

    dataset: Shaped[Array, " n"]
    backbone: Shaped[Array, " n"]
    tier: Shaped[Array, " n"]
    shots: Int[Array, " n"]
    seed: Int[Array, " n"]
    accuracy: Float[Array, "n m"]
    methods: tuple[str, ...]
    titles: dict[str, str]
    reference_points: frozenset[str]
    study: str
    study_hash: str
    simulated: bool

    def column(self, method: str) -> Float[Array, " n"]:
        return self.accuracy[:, self.methods.index(method)]

    def where(self, keep: Bool[Array, " n"]) -> "Panel":
        axes = ("dataset", "backbone", "tier", "shots", "seed", "accuracy")
        return replace(self, **{name: getattr(self, name)[keep] for name in axes})

    def combinations(self) -> Int[Array, " n"]:
        """A number per (dataset, backbone, tier)."""
        keys = np.stack([self.dataset, self.backbone, self.tier], axis=1).astype(str)
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    def present_at_every_shot_count(self) -> Bool[Array, " n"]:
        """The combination guard: without it, dropped cells masquerade as trends over K."""
        group = self.combinations()
        counts = np.zeros((group.max(initial=-1) + 1, len(np.unique(self.shots))), int)
        np.add.at(counts, (group, np.unique(self.shots, return_inverse=True)[1]), 1)
        return np.all(counts > 0, axis=1)[group]


def panel(table: "pa.Table") -> Panel:
    """Pivot a records table; records of different studies are refused, because they do not compare."""
    if not table.num_rows:
        raise StudyError("there are no records to compare. Run `kshot run` first.")
    hashes = sorted(
        {(row["study"], row["study_hash"]) for row in table.select(["study", "study_hash"]).to_pylist()}
    )
    if len(hashes) > 1:
        listed = ", ".join(f"{name} {digest}" for name, digest in hashes)
        raise StudyError(f"these records come from different studies: {listed}. Report one at a time.")
    names = ("dataset", "backbone", "tier", "shots", "seed")
    columns = [np.asarray(table[name].to_pylist()) for name in names]
    numbered = np.stack([np.unique(values, return_inverse=True)[1].reshape(-1) for values in columns], axis=1)
    _, first, cell = np.unique(numbered, axis=0, return_index=True, return_inverse=True)
    method = np.asarray(table["method"].to_pylist())
    methods = tuple(dict.fromkeys(method.tolist()))
    accuracy = np.full((len(first), len(methods)), np.nan)
    values = np.asarray([np.nan if v is None else 100 * v for v in table["accuracy"].to_pylist()])
    accuracy[cell.reshape(-1), [methods.index(name) for name in method]] = values
    titles = dict(zip(method.tolist(), table["title"].to_pylist(), strict=True))
    sees = dict(zip(method.tolist(), table["sees"].to_pylist(), strict=True))
    return Panel(
        **{name: values[first] for name, values in zip(names, columns, strict=True)},
        accuracy=accuracy,
        methods=methods,
        titles=titles,
        reference_points=frozenset(name for name, seen in sees.items() if not set(seen) <= FREE_EVIDENCE),
        study=hashes[0][0],
        study_hash=hashes[0][1],
        simulated=any(table["simulated"].to_pylist()),
    )
