"""Inputs of a report beside its records; a table that lacks one of them gives the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float

from kshot.stats.bootstrap import UNKNOWN, Estimate, cluster_mean
from kshot.stats.panel import CELL, Panel
from kshot.types import BALANCED, Array, Sketch

if TYPE_CHECKING:
    import pyarrow as pa

# (dataset, backbone, tier, shots, seed, profile); a probe of the whole stratum ends in OF_STRATUM.
ProbeKey: TypeAlias = tuple[str, str, str, int, int, str]
OF_STRATUM: tuple[Any, ...] = (0, -1, BALANCED)


@dataclass(frozen=True)
class Probed:
    """Stored probes: values by quantity (`probe.name`) and key."""

    values: Mapping[str, Mapping[ProbeKey, float]] = field(default_factory=dict)

    def at(self, quantity: str, *key: Any) -> float:
        """One value, NaN if it was not measured; without shots, seed and profile that of the whole stratum."""
        whole: Any = (*key, *OF_STRATUM[len(key) - 3 :])
        return self.values.get(quantity, {}).get(whole, float("nan"))

    def pooled(self, quantity: str, tier: str) -> Estimate:
        """Mean over the strata or draws of a tier with its interval over datasets."""
        kept = {key: value for key, value in self.values.get(quantity, {}).items() if key[2] == tier}
        if not kept:
            return UNKNOWN
        return cluster_mean(np.array(list(kept.values()), float), np.array([key[0] for key in kept]))

    def along(self, panel: Panel, quantity: str) -> Float[Array, " n"]:
        """One value per cell of the panel."""
        return np.array([self.at(quantity, *cell) for cell in panel.cell_keys()], float)

    def of(self, panel: Panel) -> "Probed":
        """Keep the strata, tiers and profiles that the panel shows; probes without a draw count as balanced."""
        profiles, strata = set(panel.names("profile")), set(panel.cell_keys(("dataset", "backbone", "tier")))

        def shown(key: ProbeKey) -> bool:
            return key[:3] in strata and (key[5] in profiles or (key[4] < 0 and key[5] == BALANCED))

        return Probed(
            {
                quantity: {key: value for key, value in by_key.items() if shown(key)}
                for quantity, by_key in self.values.items()
            }
        )


def read_probes(table: "pa.Table") -> Probed:
    values: dict[str, dict[ProbeKey, float]] = {}
    columns = (table[name].to_pylist() for name in (*CELL, "quantity", "value"))
    for *key, quantity, value in zip(*columns, strict=True):
        values.setdefault(quantity, {})[tuple(key)] = value
    return Probed(values)


@dataclass(frozen=True, slots=True)
class Gate:
    """Published facts about a dataset; `band` holds for one backbone and tier only."""

    split: str
    band: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class MethodText:
    """Where a method was published, what it does, what can be set, and its name in Python."""

    paper: str = ""
    about: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    python: str = ""


@dataclass(frozen=True)
class Context:
    """`own`: methods that do not come with kshot.
    `headroom`: by (dataset, backbone). `measured`: the same cells by every metric, where answers are kept.
    `leaks`: what the leak check found, by method.
    `other_precision`, `without_views`: the same cells computed so."""

    own: Sequence[str] = ()
    method_texts: Mapping[str, MethodText] = field(default_factory=dict)
    gates: Mapping[str, Gate] = field(default_factory=dict)
    band_backbone: str = ""
    band_tier: str = ""
    sketches: Sequence[Sketch] = ()
    sketches_absent: str = "features not at hand"
    headroom: Mapping[tuple[str, str], float] = field(default_factory=dict)
    probed: Probed = field(default_factory=Probed)
    other_precision: Panel | None = None
    without_views: Panel | None = None
    measured: Mapping[str, Panel] = field(default_factory=dict)
    corrected: bool = False
    unfinished: str = ""
    leaks: Mapping[str, Sequence[str]] = field(default_factory=dict)
