"""The work on a cell: load its features, draw the episode, run every method on it, measure."""

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.bench.knobs import made, measure_oracle
from kshot.bench.probes import measure_probe
from kshot.bench.recipes import KNOB_ORACLE, PROBE
from kshot.bench.record import CellFacts, Record
from kshot.bench.study import Cell, MethodSpec, Study
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
from kshot.types import Array, Views

# How far float32 may be off over a thousand classes.
PROBABILITIES_ADD_UP = 1e-3
# Labels are kept in 16 bits.
MOST_CLASSES = 2**16


def run_cell(
    cell: Cell,
    specs: Sequence[MethodSpec],
    stratum: Stratum,
    prior: Prior | None,
    keep_answers: bool = False,
    finished: Callable[[], None] = lambda: None,
) -> tuple[CellFacts, list[Record]]:
    """Facts about the cell and one record per method; a method's failure is its record, not an exception.

    `finished` is called after every method.
    """
    probes = any(spec.use.startswith(PROBE) for spec in specs)
    episode = None if probes else stratum.episode(cell.shots, cell.seed, prior, cell.profile)
    work, records = SharedWork(), []
    for spec in specs:
        if episode is None:
            records.append(measure_probe(cell, spec, stratum, prior))
        elif spec.use.startswith(KNOB_ORACLE):
            records.append(measure_oracle(spec, episode))
        else:
            records.append(run_method(spec, episode, keep_answers, work))
        finished()
    return cell_facts(stratum, episode, prior), records


def run_method(
    spec: MethodSpec, episode: Episode, keep_answers: bool = False, work: SharedWork | None = None
) -> Record:
    """Fit and score one method; methods of kshot share the results that are kept in `work`, others do not."""
    method = made(spec)
    # Read once, so that a method cannot declare one thing here and another later.
    info = method.info
    views = spec.views if info.views else None
    common = {"sees": tuple(sorted(info.sees)), "n_test": episode.n_test}
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

    if len(method.classes_) > MOST_CLASSES:
        raise InputError(
            f"answers are kept for at most {MOST_CLASSES:,} classes, not {len(method.classes_):,}. "
            "Write answers = false in the study file."
        )
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


def cell_facts(stratum: Stratum, episode: Episode | None, prior: Prior | None) -> CellFacts:
    """Measure the geometry that tables show; no method sees it. Probes have no use for it."""
    whose = CellFacts(stratum.simulated, str(stratum.test.X.dtype), stratum.n_classes, stratum.protocol)
    if episode is None:
        return whose
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
    return replace(whose, n_classes=len(episode.asked), lambda_js=lambda_js, d2=d2, v=v, share=share)


class Loaded(NamedTuple):
    """What a cell needs: the sha256 of its features as one text, and how a study reads them."""

    study: Study
    features: Path | Store
    hashes: str
    views: frozenset[Views]


def load_cell(loaded: Loaded, cell: Cell) -> tuple[Stratum, Prior | None]:
    """The stratum and the text of a cell, as the study wants them; None for a backbone without text.

    One stratum at a time is kept, because two of the largest would take a gigabyte. Workers live longer than a run, so
    hashes are part of what it is kept under.
    """
    study, views = loaded.study, loaded.views
    place = cell.dataset, cell.backbone, study.dtype, loaded.hashes
    stratum = _kept(_strata, 1, (*place, study.pool_cap, views, study.supports), lambda: _load_stratum(loaded, cell))
    return stratum, _kept(_priors, 8, (*place, cell.tier), lambda: _load_prior(loaded, cell))


_strata: dict[tuple, Stratum] = {}
_priors: dict[tuple, Prior | None] = {}


def _kept(cache: dict[tuple, Any], most: int, key: tuple, load: Callable[[], Any]) -> Any:
    if key not in cache:
        while len(cache) >= most:
            del cache[next(iter(cache))]
        cache[key] = load()
    return cache[key]


def _load_stratum(loaded: Loaded, cell: Cell) -> Stratum:
    study = loaded.study
    given = study.supports_of(cell.dataset)
    where = as_store(loaded.features), cell.dataset, cell.backbone
    stratum = load_stratum(*where, study.dtype, loaded.views, given, study.pool_cap)
    viewed = (digest for stored in stratum.views.values() for digest in stored.hashes)
    _check_unchanged(f"{cell.dataset}/{cell.backbone}", [*stratum.hashes.values(), *viewed], loaded.hashes)
    return stratum


def _load_prior(loaded: Loaded, cell: Cell) -> Prior | None:
    store = as_store(loaded.features)
    if not store.tiers(cell.dataset, cell.backbone):
        return None
    prior = load_prior(store, cell.dataset, cell.backbone, cell.tier, loaded.study.dtype)
    _check_unchanged(f"{cell.dataset}/{cell.backbone}/text-{cell.tier}", [prior.sha256], loaded.hashes)
    return prior


def _check_unchanged(name: str, digests: Iterable[str], expected: str) -> None:
    if not set(expected.split()).issuperset(digests):
        raise FeatureError(
            f"{name} was written again after this run had begun, or is other where this worker looks. Finished records "
            "are kept; run the same command again."
        )
