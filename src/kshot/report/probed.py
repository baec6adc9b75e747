"""Stored probes as a report needs them: looked up by stratum, or pooled over datasets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Float, Shaped

from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.panel import CELL, Panel
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

# (dataset, backbone, tier, shots, seed); what belongs to the stratum has 0 shots and seed −1.
ProbeKey: TypeAlias = tuple[str, str, str, int, int]
HOW_TO_PROBE = "`kshot probe RECORDS` measures it"


@dataclass(frozen=True)
class Probed:
    """Values by quantity (`probe.name`) and key."""

    values: Mapping[str, Mapping[ProbeKey, float]] = field(default_factory=dict)

    def at(
        self, quantity: str, dataset: str, backbone: str, tier: str, shots: int = 0, seed: int = -1
    ) -> float:
        """NaN where it was not measured."""
        return self.values.get(quantity, {}).get((dataset, backbone, tier, shots, seed), float("nan"))

    def column(
        self, quantity: str, tier: str, shots: int | None = None
    ) -> tuple[Float[Array, " n"], Shaped[Array, " n"]]:
        """All values of one tier, at one shot count where given, and their datasets."""
        kept = {
            key: value
            for key, value in self.values.get(quantity, {}).items()
            if key[2] == tier and shots in (None, key[3])
        }
        return np.array(list(kept.values()), float), np.array([key[0] for key in kept], str)

    def pooled(self, quantity: str, tier: str) -> Estimate:
        """Mean over strata or draws with its interval over datasets."""
        values, datasets = self.column(quantity, tier)
        return cluster_mean(values, datasets) if len(values) else Estimate(float("nan"), None, None, 0, 0)

    def of(self, panel: Panel) -> "Probed":
        """Only the strata and tiers that the panel shows."""
        strata = set(zip(panel.dataset.tolist(), panel.backbone.tolist(), panel.tier.tolist(), strict=True))
        return Probed(
            {
                quantity: {key: value for key, value in found.items() if key[:3] in strata}
                for quantity, found in self.values.items()
            }
        )


def read_probes(table: "pa.Table") -> Probed:
    found: dict[str, dict[ProbeKey, float]] = {}
    columns = (table[name].to_pylist() for name in (*CELL, "quantity", "value"))
    for *key, quantity, value in zip(*columns, strict=True):
        found.setdefault(quantity, {})[tuple(key)] = value
    return Probed(found)
