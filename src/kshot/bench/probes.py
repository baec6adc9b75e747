"""Probes as records of the same cache: those of a stratum, of a shot count, of a draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kshot.bench.query import Asked, Keys, Query, query
from kshot.bench.recipes import EVERYTHING, PROBE
from kshot.bench.record import CELL, Record, cells_of
from kshot.bench.records import PROBES, Records
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.store import Store
from kshot.data.stratum import Prior, Stratum
from kshot.theory.probes.measure import NO_SEED, NO_SHOTS, geometry, one_draw, over_draws, per_class, predicted
from kshot.types import BALANCED

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS = ("geometry", "draws", "per_class")


@dataclass(frozen=True, slots=True)
class ProbeSelection:
    """Which probes of a study; all backbones and draws unless given."""

    groups: Sequence[str] = GROUPS
    tiers: Sequence[str] = ("dataset",)
    backbones: Sequence[str] = ()
    draws: int | None = None

    def keeps(self, cell: Cell) -> bool:
        return cell.tier in self.tiers and (not self.backbones or cell.backbone in self.backbones)


ALL_PROBES = ProbeSelection()


def probe_query(study: Study, store: Store, chosen: ProbeSelection, keep: Callable[[Cell], bool]) -> Query:
    """The probes of a study's cells whose features are stored."""
    whole = query(study, store, keep=lambda cell: chosen.keeps(cell) and keep(cell))
    seeds = sorted({cell.seed for cell in whole.cells})[: chosen.draws]
    spread = MethodSpec("probe:spread", f"{PROBE}spread", {"seeds": seeds})
    of_group = {"geometry": ("geometry", "predicted"), "draws": ("draws",), "per_class": ("per_class",)}
    specs = {
        name: MethodSpec(f"{PROBE}{name}", f"{PROBE}{name}") for group in chosen.groups for name in of_group[group]
    }
    specs |= {"spread": spread} if "draws" in chosen.groups else {}
    keys = Keys(study, whole.source.hashes, list(specs.values()))
    cells: dict[Cell, dict[str, Asked]] = {}

    def ask(cell: Cell, name: str, drawn: int) -> None:
        if name in specs:
            left = whole.strata[cell.dataset, cell.backbone].left(drawn)
            cells.setdefault(cell, {})[specs[name].name] = keys.asked(cell, specs[name], left)

    for cell in (*whole.cells, *whole.dropped):
        ask(replace(cell, shots=NO_SHOTS, seed=NO_SEED, profile=BALANCED), "geometry", NO_SHOTS)
        if cell.shots > 1:
            # A prediction takes no pictures from the pool.
            ask(replace(cell, seed=NO_SEED, profile=BALANCED), "predicted", NO_SHOTS)
    for cell in whole.cells:
        if cell.seed in seeds:
            if cell.shots > 1:
                ask(replace(cell, seed=NO_SEED), "spread", cell.shots)
            ask(cell, "draws", cell.shots)
            ask(cell, "per_class", cell.shots)
    return replace(whole, cells=cells, source=keys)


def measure_probe(cell: Cell, spec: MethodSpec, stratum: Stratum, prior: Prior | None) -> Record:
    """One probe of a cell."""
    assert prior is not None  # A query gives no key to a probe without text.
    draw = stratum, prior.text, cell.shots, cell.seed, cell.profile
    match spec.use.removeprefix(PROBE):
        case "geometry":
            quantities = geometry(stratum, prior.text)
        case "predicted":
            quantities = predicted(stratum, prior.text, cell.shots)
        case "spread":
            quantities = over_draws(stratum, prior.text, cell.shots, spec.params["seeds"], cell.profile)
        case "draws":
            quantities = one_draw(*draw)
        case _:
            quantities = per_class(*draw)
    return Record(tuple(sorted(EVERYTHING)), "ok", n_test=len(stratum.test.y), quantities=quantities)


def probe_table(records: Records, study: str) -> "pa.Table":
    """The probes that a study asked for last, a row a cell and quantity, sorted; none where it asked for none."""
    import pyarrow as pa

    rows: list[tuple] = []
    if records.has(name := study + PROBES):
        table = records.table(records.saved(name).keys(), [*CELL, "quantities"])
        for cell, quantities in zip(cells_of(table), table["quantities"].to_pylist(), strict=True):
            place = tuple(getattr(cell, axis) for axis in CELL)
            rows += [(*place, name, value) for name, value in quantities or ()]
    types = (*(pa.string(),) * 3, pa.int32(), pa.int32(), *(pa.string(),) * 2, pa.float64())
    names = (*CELL, "quantity", "value")
    columns = zip(*sorted(rows), strict=True) if rows else [[]] * len(names)
    return pa.table({n: pa.array(list(c), t) for n, c, t in zip(names, columns, types, strict=True)})
