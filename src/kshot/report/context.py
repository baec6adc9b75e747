"""What a report may know beside the records; whatever is absent is said to be absent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kshot.stats.panel import Panel
from kshot.types import Sketch


@dataclass(frozen=True, slots=True)
class Gate:
    """Published facts about a dataset; `band` holds for one backbone and tier only."""

    split: str
    band: tuple[int, int] | None


@dataclass(frozen=True)
class Context:
    """Published bands, feature sketches, headroom per (dataset, backbone), and the other precision's records."""

    gates: Mapping[str, Gate] = field(default_factory=dict)
    band_backbone: str = ""
    band_tier: str = ""
    sketches: Sequence[Sketch] = ()
    sketches_absent: str = "features not at hand"
    headroom: Mapping[tuple[str, str], float] = field(default_factory=dict)
    other_precision: Panel | None = None
    corrected: bool = False
