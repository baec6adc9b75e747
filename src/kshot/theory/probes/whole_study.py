"""Probes over all strata and draws of a study, on any engine, resumable like cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from jaxtyping import Float

from kshot.bench.cell import loaded_prior, loaded_stratum
from kshot.bench.engines import Workload
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.bench.work import CellBatch, Work
from kshot.data.stratum import Prior, Stratum
from kshot.solvers.rows import class_counts, class_means
from kshot.theory.probes.draw_probes import DRAW_PROBES, EVERYTHING
from kshot.theory.probes.headroom import headroom_row
from kshot.theory.probes.offset import offset_row
from kshot.theory.probes.section import Row
from kshot.theory.probes.spread import class_moments, measured_spread, predicted_row
from kshot.theory.probes.stored import NO_SEED, NO_SHOTS, ProbeFolder
from kshot.types import Array

GEOMETRY, DRAWS, PER_CLASS = "geometry", "draws", "per_class"
GROUPS = (GEOMETRY, DRAWS, PER_CLASS)
# tr(Sigma²) has an unbiased estimate from four pictures on.
LEAST_POOL = 4

Measured = list[tuple[Cell, str, Row]]


def probe_batches(
    work: Work,
    folder: ProbeFolder,
    groups: Sequence[str],
    keep: Callable[[Cell], bool],
    shard: int = 0,
    shards: int = 1,
) -> list[CellBatch]:
    """What is still to be measured on the cells asked for, one batch per stratum, tier, shot count and group.

    Shards divide all batches and not what is missing, so that a shard keeps its share when it is resumed.
    """
    cells = [cell for cell in work.cells if keep(cell) and cell not in work.dropped]
    whole = {Cell(c.dataset, c.backbone, c.tier, NO_SHOTS, NO_SEED): None for c in cells}
    batches = []
    for group in groups:
        files: dict[str, list[Cell]] = {}
        for cell in whole if group == GEOMETRY else cells:
            files.setdefault(folder.place(cell, group), []).append(cell)
        spec = MethodSpec(group, group)
        batches += [
            CellBatch(tuple(shared), (spec,), work.hashes(shared[0]))
            for shared in list(files.values())[shard::shards]
            if folder.missing(dict.fromkeys(shared, (spec,)))
        ]
    return batches


def probe_workload(study: Study, features: Path, folder: ProbeFolder, batches: Sequence[CellBatch]) -> Workload:
    """What an engine needs to measure these batches."""
    return Workload(study, features, folder, batches, run_probe_batch, _missing)


def _missing(folder: ProbeFolder, study: Study, cells: Mapping[Cell, Sequence[MethodSpec]]) -> Mapping:
    return folder.missing(cells)


def run_probe_batch(study: Study, features: Path, folder: ProbeFolder, batch: CellBatch) -> int:
    """What a worker does with one batch. Cells without text get no row: every probe is about text and image."""
    first, (spec,) = batch.cells[0], batch.specs
    stratum = loaded_stratum(features, first.dataset, first.backbone, study.dtype, batch.hashes)
    prior = loaded_prior(features, first.dataset, first.backbone, first.tier, study.dtype, batch.hashes)
    measured: Measured = []
    if prior is not None:
        if spec.name == GEOMETRY:
            shots = sorted({cell.shots for cell in study.cells() if cell.dataset == first.dataset})
            measured = measure_geometry(first, stratum, prior.text, shots)
        else:
            measured = measure_draws(batch.cells, stratum, prior.text, spec.name)
    folder.write(study, spec.name, batch.cells, measured, stratum.simulated)
    return len(batch.cells)


def measure_geometry(cell: Cell, stratum: Stratum, text: Float[Array, "C d"], shots: Sequence[int]) -> Measured:
    """What the pool alone tells, and the spread that it predicts at each shot count."""
    pool = stratum.pool
    offset = offset_row(class_means(pool.X, pool.y, stratum.n_classes), text)
    measured: Measured = [
        (cell, "offset", offset | {"d·cos²": float(offset["cos² to class differences"]) / float(offset["1/d"])}),
        (cell, "headroom", headroom_row(pool, text)),
        (cell, "stratum", {"pictures": len(pool.y) + len(stratum.test.y)}),
    ]
    if class_counts(pool.y, stratum.n_classes).min() >= LEAST_POOL:
        moments = class_moments(pool, text)
        measured.append((cell, "spread", {"d_eff": moments.participation()}))
        for k in shots:
            if k > 1:
                predicted = predicted_row(moments, text.shape[1], k)
                measured.append((_all_draws(cell, k), "spread", predicted))
    return measured


def measure_draws(cells: Sequence[Cell], stratum: Stratum, text: Float[Array, "C d"], group: str) -> Measured:
    """The group's probes on every draw, and how far the James–Stein ratio moves between them."""
    found: Measured = []
    supports = []
    for cell in cells:
        draw = stratum.episode(cell.shots, cell.seed, Prior(text), cell.profile).reveal(EVERYTHING)
        supports.append(draw.support)
        for key, probe in DRAW_PROBES.items():
            if (key == PER_CLASS) == (group == PER_CLASS) and cell.shots >= probe.least_shots:
                found.append((cell, key, probe.measure(draw)))
    if group == DRAWS and cells[0].shots > 1 and len(cells) > 1:
        measured = {"measured SD": measured_spread(supports, text), "draws": len(cells)}
        found.append((_all_draws(cells[0], cells[0].shots), "spread", measured))
    return found


def _all_draws(cell: Cell, shots: int) -> Cell:
    return replace(cell, shots=shots, seed=NO_SEED)
