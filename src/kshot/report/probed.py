"""Stored probes as a report needs them: looked up by stratum, or pooled over datasets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Float

from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.panel import CELL, Panel
from kshot.types import BALANCED, Array

if TYPE_CHECKING:
    import pyarrow as pa

# (dataset, backbone, tier, shots, seed, profile); what belongs to the stratum has 0 shots and seed −1.
ProbeKey: TypeAlias = tuple[str, str, str, int, int, str]
HOW_TO_PROBE = "`kshot probe RECORDS` measures it"


@dataclass(frozen=True)
class Probed:
    """Values by quantity (`probe.name`) and key."""

    values: Mapping[str, Mapping[ProbeKey, float]] = field(default_factory=dict)

    def at(
        self,
        quantity: str,
        dataset: str,
        backbone: str,
        tier: str,
        shots: int = 0,
        seed: int = -1,
        profile: str = BALANCED,
    ) -> float:
        """NaN where it was not measured."""
        return self.values.get(quantity, {}).get((dataset, backbone, tier, shots, seed, profile), float("nan"))

    def pooled(self, quantity: str, tier: str) -> Estimate:
        """Mean over the strata or draws of a tier with its interval over datasets."""
        kept = {key: value for key, value in self.values.get(quantity, {}).items() if key[2] == tier}
        if not kept:
            return Estimate(float("nan"), None, None, 0, 0)
        return cluster_mean(np.array(list(kept.values()), float), np.array([key[0] for key in kept]))

    def along(self, panel: Panel, quantity: str) -> Float[Array, " n"]:
        """One value per cell of the panel."""
        cells = zip(*(getattr(panel, axis).tolist() for axis in CELL), strict=True)
        return np.array([self.at(quantity, *cell) for cell in cells], float)

    def of(self, panel: Panel) -> "Probed":
        """Only the strata, tiers and profiles that the panel shows; what needs no draw counts as balanced."""
        profiles = set(panel.profile.tolist())
        strata = set(zip(panel.dataset.tolist(), panel.backbone.tolist(), panel.tier.tolist(), strict=True))
        return Probed(
            {
                quantity: {
                    key: value
                    for key, value in by_key.items()
                    if key[:3] in strata and (key[5] in profiles or (key[4] < 0 and key[5] == BALANCED))
                }
                for quantity, by_key in self.values.items()
            }
        )


def read_probes(table: "pa.Table") -> Probed:
    values: dict[str, dict[ProbeKey, float]] = {}
    columns = (table[name].to_pylist() for name in (*CELL, "quantity", "value"))
    for *key, quantity, value in zip(*columns, strict=True):
        values.setdefault(quantity, {})[tuple(key)] = value
    return Probed(values)
