"""Measure all probes of a stratum, or of every stratum and draw of a study, on any engine, resumable like cells.

The probes see test labels: nothing they find may enter a method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from jaxtyping import Float

from kshot.bench.cell import load_cell
from kshot.bench.engines import Workload
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.bench.work import CellBatch, Work
from kshot.data.episode import too_thin
from kshot.data.stratum import Prior, Stratum
from kshot.errors import InputError
from kshot.solvers.rows import class_counts, class_means
from kshot.theory.probes.per_class import per_class_row
from kshot.theory.probes.ratio import (
    counterfactual_row,
    headroom_row,
    objectives_row,
    offset_row,
    optimum_row,
    translation_row,
)
from kshot.theory.probes.spread import class_moments, measured_spread, predicted_row
from kshot.theory.probes.stored import NO_SEED, NO_SHOTS, Measured, ProbeFolder
from kshot.types import Array, Evidence

GEOMETRY, DRAWS, PER_CLASS = "geometry", "draws", "per_class"
GROUPS = (GEOMETRY, DRAWS, PER_CLASS)
EVERYTHING: frozenset[Evidence] = frozenset({"text", "support", "pool", "test"})
# tr(Sigma²) has an unbiased estimate from four pictures on.
LEAST_POOL = 4


def measure_stratum(
    stratum: Stratum,
    text: Float[Array, "C d"],
    tier: str,
    shots: Sequence[int],
    seeds: Sequence[int],
    progress: Callable[[str], None],
) -> Measured:
    """All probes of one stratum at the shot counts that leave five pool images per class."""
    usable = [k for k in shots if not too_thin(stratum.pool.y, stratum.n_classes, k)]
    if len(seeds) < 2:
        raise InputError("the spread of a ratio takes at least two draws. Give more with --seeds.")
    if not usable:
        raise InputError(
            f"none of the shot counts {list(shots)} leaves five pool images per class of {stratum.dataset}. Give "
            "others with --shots."
        )
    progress("geometry of the pool")
    whole = Cell(stratum.dataset, stratum.backbone, tier, NO_SHOTS, NO_SEED)
    measured = measure_geometry(whole, stratum, text, usable)
    for k in usable:
        progress(f"draws of K = {k}")
        cells = [replace(whole, shots=k, seed=seed) for seed in seeds]
        for group in (DRAWS, PER_CLASS):
            measured += measure_draws(cells, stratum, text, group)
    return measured


def measure_geometry(cell: Cell, stratum: Stratum, text: Float[Array, "C d"], shots: Sequence[int]) -> Measured:
    """The probes that need no draw, and the predicted spread of the James–Stein ratio at each shot count."""
    pool = stratum.pool
    measured: Measured = [
        (cell, "offset", offset_row(class_means(pool.X, pool.y, stratum.n_classes), text)),
        (cell, "headroom", headroom_row(pool, text)),
        (cell, "stratum", {"pictures": float(len(pool.y) + len(stratum.test.y))}),
    ]
    if class_counts(pool.y, stratum.n_classes).min() >= LEAST_POOL:
        moments = class_moments(pool, text)
        measured.append((cell, "spread", {"d_eff": moments.participation()}))
        measured += [
            (replace(cell, shots=k), "spread", predicted_row(moments, text.shape[1], k)) for k in shots if k > 1
        ]
    return measured


def measure_draws(cells: Sequence[Cell], stratum: Stratum, text: Float[Array, "C d"], group: str) -> Measured:
    """The group's probes on every draw, and the spread of the James–Stein ratio over them."""
    measured: Measured = []
    supports = []
    for cell in cells:
        draw = stratum.episode(cell.shots, cell.seed, Prior(text), cell.profile).reveal(EVERYTHING)
        support, residue, test = draw.support, draw.pool, draw.test
        supports.append(support)
        if group == PER_CLASS:
            measured.append((cell, "per_class", per_class_row(support, test, text)))
            continue
        measured.append((cell, "objectives", objectives_row(support, residue, test, text)))
        measured.append((cell, "translation", translation_row(support, residue, test, text)))
        # James–Stein needs the scatter of two shots.
        if cell.shots > 1:
            measured.append((cell, "optimum", optimum_row(support, residue, text)))
            measured.append((cell, "counterfactual", counterfactual_row(support, residue, test, text)))
    if group == DRAWS and cells[0].shots > 1 and len(cells) > 1:
        spread = {"measured SD": measured_spread(supports, text), "draws": float(len(cells))}
        measured.append((replace(cells[0], seed=NO_SEED), "spread", spread))
    return measured


def probe_batches(
    work: Work,
    folder: ProbeFolder,
    groups: Sequence[str],
    keep: Callable[[Cell], bool],
    shard: int = 0,
    shards: int = 1,
) -> list[CellBatch]:
    """Batches that are not stored yet, one per stratum, tier, shot count and group.

    Shards divide all batches and not the missing ones, so that a shard keeps its share when it is resumed.
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
    """Work for an engine: measure and store these batches."""
    return Workload(study, features, folder, batches, run_probe_batch, _missing)


def _missing(folder: ProbeFolder, study: Study, cells: Mapping[Cell, Sequence[MethodSpec]]) -> Mapping:
    return folder.missing(cells)


def run_probe_batch(study: Study, features: Path, folder: ProbeFolder, batch: CellBatch) -> int:
    """Measure and store one batch. Cells without text get no row: every probe is about text and image."""
    first, (spec,) = batch.cells[0], batch.specs
    stratum, prior = load_cell(study, features, batch, first)
    measured: Measured = []
    if prior is not None and spec.name == GEOMETRY:
        shots = sorted({cell.shots for cell in study.cells() if cell.dataset == first.dataset})
        measured = measure_geometry(first, stratum, prior.text, shots)
    elif prior is not None:
        measured = measure_draws(batch.cells, stratum, prior.text, spec.name)
    folder.write(study, spec.name, batch.cells, measured, stratum.simulated)
    return len(batch.cells)
