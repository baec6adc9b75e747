"""What a worker does with a batch: load features once, run each cell, write it at once."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from kshot.bench.execution.cell import run_cell
from kshot.bench.records.folder import Records
from kshot.bench.records.kept_answers import write_answers
from kshot.bench.study import Study
from kshot.bench.work import CellBatch
from kshot.episodes.stratum import Prior, Stratum, load_prior, load_stratum
from kshot.errors import FeatureError
from kshot.features.store import Store
from kshot.types import Views

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)

SAFE_PATH = "PYTHONSAFEPATH"


def one_thread_per_worker() -> None:
    """Children read these variables when they load their BLAS, before any code of ours runs in them."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))


@contextmanager
def no_module_of_this_folder() -> Iterator[None]:
    """Python processes started meanwhile find no module of the current folder in place of one of Python's own, as
    those that `python -c` starts would."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before


def run_batch(
    study: Study,
    features: Path,
    records: Records,
    batch: CellBatch,
) -> int:
    """Compute and write the cells that are still absent; return how many that were."""
    computed = 0
    for cell in batch.cells:
        if not records.path(cell).exists():
            stratum = loaded_stratum(
                features, cell.dataset, cell.backbone, study.dtype, batch.hashes, batch.views
            )
            prior = loaded_prior(features, cell.dataset, cell.backbone, cell.tier, study.dtype, batch.hashes)
            facts, rows = run_cell(cell, batch.specs, stratum, prior, study.min_residue, study.answers)
            # First, so that a cell whose records are there is done.
            write_answers(records, rows)
            records.write(study, facts, rows)
            computed += 1
    return computed


# Workers of a cluster live longer than a run: what they keep belongs to the hashes, not to the names.
# One stratum at a time: batches hold one, and two of the largest would take a gigabyte.
@lru_cache(maxsize=1)
def loaded_stratum(
    features: Path,
    dataset: str,
    backbone: str,
    dtype: str,
    hashes: frozenset[str],
    views: frozenset[Views] = frozenset(),
) -> Stratum:
    stratum = load_stratum(Store(features), dataset, backbone, dtype, views)
    viewed = (digest for stored in stratum.views.values() for digest in stored.hashes)
    _check_unchanged(f"{dataset}/{backbone}", [*stratum.hashes.values(), *viewed], hashes)
    return stratum


@lru_cache(maxsize=8)
def loaded_prior(
    features: Path, dataset: str, backbone: str, tier: str, dtype: str, hashes: frozenset[str]
) -> Prior | None:
    store = Store(features)
    if not store.tiers(dataset, backbone):
        return None
    prior = load_prior(store, dataset, backbone, tier, dtype)
    _check_unchanged(f"{dataset}/{backbone}/text-{tier}", [prior.sha256], hashes)
    return prior


def _check_unchanged(name: str, found: Iterable[str], expected: frozenset[str]) -> None:
    if not expected.issuperset(found):
        raise FeatureError(
            f"{name} was written again after this run had begun. Finished cells are kept; restore the features, or run "
            "with another --records."
        )
