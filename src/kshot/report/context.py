"""What a report may know beside the records; whatever is absent is said to be absent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kshot.report.probed import Probed
from kshot.stats.panel import Panel
from kshot.types import Sketch


@dataclass(frozen=True, slots=True)
class Gate:
    """Published facts about a dataset; `band` holds for one backbone and tier only."""

    split: str
    band: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Described:
    """A method in its own words: where it was published, what it does, what can be set, its name in Python."""

    paper: str
    about: str
    parameters: Mapping[str, str]
    python: str


@dataclass(frozen=True)
class Context:
    """Methods that do not come with kshot, methods in their own words, published bands, feature sketches, headroom per
    (dataset, backbone), stored probes, the same cells in another precision and without augmented views, the same cells
    by every metric, and how many of the study's cells are recorded."""

    own: Sequence[str] = ()
    described: Mapping[str, Described] = field(default_factory=dict)
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
    cells_done: int = 0
    cells_wanted: int = 0

    @property
    def unfinished(self) -> str:
        """What a reader of an unfinished run must know; nothing where the run is complete."""
        missing = self.cells_wanted - self.cells_done
        if missing <= 0:
            return ""
        return (
            f"UNFINISHED, {missing:,} of {self.cells_wanted:,} cells to compute: figures may change, datasets may be "
            "absent. `kshot run` computes the rest."
        )
