"""What a worker does with a batch: load features once, run each cell, write it at once."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from kshot.bench.cell import run_cell
from kshot.bench.prepare import Batch
from kshot.bench.records import Records
from kshot.bench.study import Cell, Study
from kshot.episodes.stratum import Prior, Stratum, load_prior, load_stratum
from kshot.features.store import Store


def run_batch(
    study: Study,
    features: Path,
    records: Records,
    batch: Batch,
    finished: Callable[[Cell], None] = lambda cell: None,
) -> int:
    """Compute and write the cells that are still absent; return how many that were."""
    computed = 0
    for cell in batch.cells:
        if not records.path(cell).exists():
            stratum = _stratum(features, cell.dataset, cell.backbone, study.dtype)
            prior = _prior(features, cell.dataset, cell.backbone, cell.tier, study.dtype)
            facts, rows = run_cell(cell, batch.specs, stratum, prior)
            records.write(study, facts, rows)
            computed += 1
        finished(cell)
    return computed


@lru_cache(maxsize=2)
def _stratum(features: Path, dataset: str, backbone: str, dtype: str) -> Stratum:
    return load_stratum(Store(features), dataset, backbone, dtype)


@lru_cache(maxsize=8)
def _prior(features: Path, dataset: str, backbone: str, tier: str, dtype: str) -> Prior | None:
    store = Store(features)
    return load_prior(store, dataset, backbone, tier, dtype) if store.tiers(dataset, backbone) else None
