"""The work on a batch: load features once, draw each cell's episode, run every method on it, measure, and write the
cell."""

import os
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from kshot.bench.record import CellFacts, Record
from kshot.bench.records import Records
from kshot.bench.study import Cell, MethodSpec, Study, parsed_supports
from kshot.bench.work import CellBatch
from kshot.data.episode import Episode
from kshot.data.store import Store, as_store
from kshot.data.stratum import Prior, Stratum, load_prior, load_stratum
from kshot.errors import FeatureError, InputError, UndefinedError
from kshot.methods import registry
from kshot.methods.base import Classifier, plain_choices
from kshot.methods.shared_work import SharedWork, sharing
from kshot.solvers.rows import (
    class_counts,
    class_independent_share,
    class_means,
    james_stein_ratio,
    mean_variances,
    row_blocks,
    squared_norms,
)
from kshot.stats.answers import Answers, answers_of, concatenate
from kshot.types import FREE_EVIDENCE, Array, Views

# A BLAS reads these when it is loaded, before any code of ours runs in a process.
ONE_THREAD: dict[str, str] = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
# How far float32 may be off over a thousand classes.
PROBABILITIES_ADD_UP = 1e-3
# pyarrow imports pandas where that is installed.
LIBRARIES = ("scipy.linalg", "scipy.special", "pyarrow.parquet", "pandas")


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def run_batch(study: Study, features: Path | Store, records: Records, batch: CellBatch) -> int:
    """Compute and write the cells that are still missing; return their number."""
    computed = 0
    for cell in batch.cells:
        if not records.cell_files(cell):
            stratum, prior = load_cell(study, features, batch, cell)
            facts, rows = run_cell(cell, batch.specs, stratum, prior, study.min_residue, study.answers)
            records.write(study, facts, rows)
            computed += 1
    return computed


def load_batch(study: Study, features: Path | Store, batch: CellBatch) -> None:
    """Load what `run_batch` needs, for processes that are forked from this one; libraries, too, some of which are
    imported at their first use only."""
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    for cell in batch.cells:
        load_cell(study, features, batch, cell)


def run_cell(
    cell: Cell,
    specs: Sequence[MethodSpec],
    stratum: Stratum,
    prior: Prior | None,
    min_residue: int | None = None,
    keep_answers: bool = False,
) -> tuple[CellFacts, list[Record]]:
    """Facts about the cell and one record per method; a method's failure is its record, not an exception."""
    episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
    work = SharedWork()
    records = [run_method(cell, spec, episode, stratum, prior, min_residue, keep_answers, work) for spec in specs]
    return cell_facts(episode, stratum, prior), records


def run_method(
    cell: Cell,
    spec: MethodSpec,
    episode: Episode,
    stratum: Stratum,
    prior: Prior | None,
    min_residue: int | None = None,
    keep_answers: bool = False,
    work: SharedWork | None = None,
) -> Record:
    """Fit and score one method; methods of kshot share the results that are kept in `work`, others do not."""
    method = registry.create_afresh(spec.use, **spec.params)
    # Read once, so that a method cannot declare one thing here and another later.
    info = method.info
    views = spec.views if info.views else None
    common = {
        "cell": cell,
        "method": spec.name,
        "title": spec.title or (info.title if spec.name == info.key else f"{info.title} ({spec.name})"),
        "sees": tuple(sorted(info.sees)),
        "n_test": episode.n_test,
        "code": registry.code_of(spec.use, spec.params),
        "views": {} if views is None else asdict(views) | {"sha256": stratum.views[views].digest},
    }
    if prior is None and "text" in info.sees:
        return Record(**common, status="undefined", reason=f"{cell.backbone} has no text")
    least = max(1, min_residue or 0)
    left = min((episode.left[seen] for seen in info.sees if seen in episode.left), default=least)
    if left < least:
        reason = f"a class keeps {left} pool pictures beside its shots, fewer than {least}"
        return Record(**common, status="undefined", reason=reason)
    if len(episode.asked) < episode.n_classes and not info.sees <= FREE_EVIDENCE:
        reason = "base to new is defined for methods that look at text and shots alone"
        return Record(**common, status="undefined", reason=reason)
    ours, scores = spec.use in registry.BUILTIN, None
    try:
        with sharing(work if ours else None):
            start = time.perf_counter()
            method.fit(**episode.reveal(info.sees, views).fit_arguments())
            fitted = time.perf_counter()
            head = asked_head(method, episode)
            if ours:
                told, scores = head.predict_with_scores(episode.queries)
            else:
                # Other methods may define either of them in their own way.
                told = head.predict(episode.queries)
        predicted = checked_predictions(told, episode.n_test, len(episode.asked))
        scored = time.perf_counter()
        selected = plain_choices(method.selected_)
        truth = episode.reveal(frozenset({"test"})).test.y
        answers = answered(head, episode.queries, truth, predicted, scores) if keep_answers else None
    except UndefinedError as error:
        return Record(**common, status="undefined", reason=str(error))
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Record(**common, status="failed", reason=reason, traceback=traceback.format_exc())
    hits = predicted == truth
    return Record(
        **common,
        status="ok",
        accuracy=float(np.mean(hits)),
        n_correct=int(np.count_nonzero(hits)),
        hits=np.packbits(hits).tobytes(),
        selected={name: choice["value"] for name, choice in selected.items()},
        selected_from={name: choice["from_"] for name, choice in selected.items()},
        fit_seconds=fitted - start,
        score_seconds=scored - fitted,
        answers=answers,
    )


def asked_head(method: Classifier, episode: Episode) -> Classifier:
    """Restrict a fitted head to the classes that the test asks for, numbered by their places."""
    if len(episode.asked) == episode.n_classes:
        return method
    head = method.among(episode.asked)
    head.classes_ = np.arange(len(episode.asked))
    return head


def checked_predictions(predicted: object, rows: int, n_classes: int) -> Int[Array, " n"]:
    """Check predicted classes and return a plain copy: an object of the method's own could change how it is scored."""
    if type(predicted) is not np.ndarray or not np.issubdtype(predicted.dtype, np.integer):
        kind = predicted.dtype if isinstance(predicted, np.ndarray) else type(predicted).__name__
        raise InputError(f"predict gave {kind}; it must give a numpy array of whole numbers, one class per query.")
    if predicted.shape != (rows,):
        raise InputError(f"predict gave an array of shape {predicted.shape} for {rows} queries; give ({rows},).")
    if rows and not 0 <= predicted.min() <= predicted.max() < n_classes:
        span = f"{predicted.min()}..{predicted.max()}"
        raise InputError(f"predict gave classes {span}; allowed is 0..{n_classes - 1}.")
    return predicted.astype(np.int64)


def answered(
    method: Classifier,
    queries: Float[Array, "n d"],
    truth: Int[Array, " n"],
    predicted: Int[Array, " n"],
    scores: Float[Array, "n C"] | None = None,
) -> Answers:
    """What the head's probabilities, or the softmax of its scores, say about the true classes; in blocks of pictures,
    because all at once may not fit memory."""
    from scipy.special import softmax

    blocks = []
    for here in row_blocks(len(queries)):
        given = method.predict_proba(queries[here]) if scores is None else softmax(scores[here], axis=1)
        found = checked_probabilities(given, len(queries[here]), len(method.classes_))
        blocks.append(answers_of(found, truth[here], predicted[here]))
    return concatenate(blocks)


def checked_probabilities(given: object, rows: int, n_classes: int) -> Float[Array, "n C"]:
    found = np.asarray(given)
    sound = found.shape == (rows, n_classes) and np.isfinite(found).all() and (found >= 0).all()
    if not sound or np.abs(found.sum(axis=1) - 1).max(initial=0) > PROBABILITIES_ADD_UP:
        raise InputError(
            f"predict_proba gave an array of shape {found.shape}; it must give {(rows, n_classes)} probabilities, the "
            "rows adding up to 1. Or write answers = false in the study file."
        )
    return found


def cell_facts(episode: Episode, stratum: Stratum, prior: Prior | None) -> CellFacts:
    """Measure the geometry that tables show; no method sees it."""
    seen = episode.reveal(frozenset({"support", "pool"}))
    lambda_js = d2 = v = share = None
    if prior is not None:
        counts = class_counts(seen.support.y, episode.n_classes)
        with np.errstate(invalid="ignore"):
            means = class_means(seen.support.X, seen.support.y, episode.n_classes)
        distances = squared_norms(prior.text - means)
        d2 = float(distances[counts > 0].mean())
        if counts.min() > 1:
            variances = mean_variances(seen.support.X, seen.support.y, means)
            v, lambda_js = float(variances.mean()), float(james_stein_ratio(variances, distances).mean())
        if class_counts(seen.pool.y, episode.n_classes).min() > 0:
            outside = class_means(seen.pool.X, seen.pool.y, episode.n_classes)
            measured = class_independent_share(outside, prior.text)
            share = None if np.isnan(measured) else measured
    return CellFacts(
        simulated=stratum.simulated,
        dtype=str(stratum.test.X.dtype),
        n_classes=len(episode.asked),
        protocol=stratum.protocol,
        feature_hashes=stratum.hashes | ({"text": prior.sha256} if prior else {}),
        lambda_js=lambda_js,
        d2=d2,
        v=v,
        share=share,
    )


def load_cell(study: Study, features: Path | Store, batch: CellBatch, cell: Cell) -> tuple[Stratum, Prior | None]:
    """The stratum and the text of a cell, as the study wants them; None for a backbone without text."""
    where, read = (features, cell.dataset, cell.backbone), (study.dtype, batch.hashes)
    return _stratum(*where, *read, study.pool_cap, batch.views, study.supports), _prior(*where, *read, cell.tier)


# Workers of a cluster live longer than a run, so the cache is keyed by hashes, too, and not only by names.
# One stratum at a time: batches hold one, and two of the largest would take a gigabyte.
@lru_cache(maxsize=1)
def _stratum(
    features: Path | Store,
    dataset: str,
    backbone: str,
    dtype: str,
    hashes: frozenset[str],
    pool_cap: int | None,
    views: frozenset[Views],
    supports: str,
) -> Stratum:
    given = parsed_supports(supports).get(dataset, {})
    stratum = load_stratum(as_store(features), dataset, backbone, dtype, views, given, pool_cap)
    viewed = (digest for stored in stratum.views.values() for digest in stored.hashes)
    _check_unchanged(f"{dataset}/{backbone}", [*stratum.hashes.values(), *viewed], hashes)
    return stratum


@lru_cache(maxsize=8)
def _prior(
    features: Path | Store, dataset: str, backbone: str, dtype: str, hashes: frozenset[str], tier: str
) -> Prior | None:
    store = as_store(features)
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
