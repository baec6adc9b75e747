"""Arrays as users have them become the parts of a store: unit rows, made by blocks, labels and text of every tier."""

import logging
import mmap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt64

from kshot.data.gate import NORM_TOLERANCE
from kshot.data.memory import MemoryStore
from kshot.data.store import view_part
from kshot.data.views import RECIPES
from kshot.errors import InputError, unknown
from kshot.methods.parameters import check_logit_scale
from kshot.solvers.labels import class_labels, encode_labels, named_text, read_labels
from kshot.solvers.rows import (
    accuracy,
    as_numpy,
    class_means,
    row_blocks,
    shot_numbers,
    unit_prototypes,
    unit_rows,
    working_dtype,
)
from kshot.types import ENCODER_CONSTANTS, Array

logger = logging.getLogger("kshot.data.features")
# The tier of text that comes without a name.
TEXT = "text"
FLOATS = (np.float16, np.float32, np.float64)
# Rows of a class, half of them shots, on which text is tried.
TRIED = 16


def hold_arrays(
    store: MemoryStore,
    where: tuple[str, str],
    parts: Mapping[str, Any],
    *,
    text: Any,
    views: Mapping[str, Any],
    classes: Sequence[Any] | None,
    ids: Sequence[Any] | None,
    constants: Mapping[str, Any] | None,
) -> None:
    """Check the arguments of `Features.from_arrays` and hold them; the first part is the one that shots are of."""
    known = {key: _constant(key, value) for key, value in (constants or {}).items()}
    pairs = {part: _pair(part, given) for part, given in parts.items()}
    rows = {part: as_numpy(X, part) for part, (X, _) in pairs.items()}
    tiers, classes = _rows_of_tiers(text, classes)
    base = next(iter(rows))
    _check_sizes(rows | {f"text {tier}": prototypes for tier, prototypes in tiers.items()}, base)
    labels = {part: read_labels(part, as_numpy(y, part), len(rows[part])) for part, (_, y) in pairs.items()}
    kinds = class_labels(labels[base], next((len(own) for own in tiers.values()), None), classes)
    names = [str(kind) for kind in kinds.tolist()]
    if kinds.dtype.kind == "U" and labels[base].dtype.kind in "iu":
        kinds = np.arange(len(names))
    numbers = {part: encode_labels(part, own, kinds) for part, own in labels.items()}
    _check_every_class(numbers[base], kinds, base)
    spans: list[str] = []
    unit = {part: _unit(X, part, spans) for part, X in rows.items()}
    unit_text = {tier: _unit(prototypes, f"text {tier}", spans) for tier, prototypes in tiers.items()}
    given_ids = _ids(ids, {part: len(y) for part, y in numbers.items()})
    about = {"logit_scale": known.get("logit_scale"), "protocol": "" if base == "all" else "arrays"}
    for part, y in numbers.items():
        store.write_images(*where, part, unit[part], y, given_ids[part], names, **about)
    for tier, prototypes in unit_text.items():
        norms = np.full(len(names), known["anchor_scale"]) if "anchor_scale" in known else None
        store.write_text(*where, tier, prototypes, norms, names, **about)
    for recipe, given in views.items():
        for number, view in enumerate(_views(recipe, given, unit[base].shape)):
            X, part = _unit(view, f"view {number} of {recipe}", spans), view_part(base, recipe, number)
            store.write_images(*where, part, X, numbers[base], given_ids[base], names, **about)
    if spans:
        logger.warning(f"{where[0]}: rows are scaled to unit length; their lengths were {', '.join(spans)}.")
    if "test" in unit:
        _warn_of_shared_rows(where[0], unit[base], unit["test"])
    _warn_of_text(where[0], unit[base], numbers[base], unit_text)


def _pair(what: str, given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"{what} must be a pair (X, y), not {type(given).__name__}.")
    return given[0], given[1]


def _constant(name: str, value: Any) -> float:
    if name not in ENCODER_CONSTANTS:
        raise InputError(unknown("constant", name, ENCODER_CONSTANTS, "Heads use no other of an encoder."))
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < np.inf:
        raise InputError(f"constants: {name} must be a number above 0, not {value!r}.")
    if name == "logit_scale":
        check_logit_scale(number, "constants")
    return number


def _rows_of_tiers(text: Any, classes: Sequence[Any] | None) -> tuple[dict[str, Array], Sequence[Any] | None]:
    """One matrix per tier with its rows in the order of the classes, and the classes if anything names them."""
    named_rows = isinstance(text, Mapping) and all(_dimensions(row) == 1 for row in text.values())
    tiers = {} if text is None else dict(text) if isinstance(text, Mapping) and not named_rows else {TEXT: text}
    order, found = classes, {}
    for tier in sorted(tiers, key=lambda tier: named_text(tiers[tier], None)[1] is None):
        prototypes, names = named_text(tiers[tier], order)
        if order is not None and names is order and classes is None:
            raise InputError(f"text {tier} has no names, but another tier has. Name its rows, too, or give classes=.")
        order = names
        found[tier] = _averaged(as_numpy(prototypes, f"text {tier}"), tier)
    return {tier: found[tier] for tier in tiers}, order


def _dimensions(value: Any) -> int:
    return 2 if isinstance(value, Mapping) else getattr(value, "ndim", None) or np.ndim(value)


def _averaged(prototypes: Array, tier: str) -> Array:
    """Prompts (C, P, d) as one row per class: the mean of their unit rows."""
    if prototypes.ndim != 3:
        return prototypes
    prompts, dim = prototypes.shape[1:]
    unit = unit_rows(prototypes.reshape(-1, dim), f"text {tier}").reshape(prototypes.shape)
    logger.warning(f"text {tier}: the unit rows of {prompts} prompts a class are averaged.")
    return unit_prototypes(unit.mean(axis=1, dtype=np.float64)).astype(unit.dtype)


def _views(recipe: str, given: Any, shape: tuple[int, ...]) -> Array:
    if recipe not in RECIPES:
        raise InputError(unknown("view recipe", recipe, RECIPES, "Give views={recipe: (E, N, d)}."))
    views = as_numpy(given, f"views {recipe}")
    if views.ndim != 3 or views.shape[1:] != shape:
        raise InputError(f"views {recipe} must have shape (E, {shape[0]}, {shape[1]}), not {views.shape}.")
    return views


def _ids(given: Sequence[Any] | None, sizes: Mapping[str, int]) -> dict[str, list[str]]:
    if given is None:
        return {part: [f"{part}/{row}" for row in range(size)] for part, size in sizes.items()}
    each = [given] if list(sizes) == ["all"] else list(given)
    if len(each) != len(sizes) or any(isinstance(own, str) for own in each):
        raise InputError(f"ids must name the pictures of {', '.join(sizes)}: one list for each, in this order.")
    return {part: [str(name) for name in own] for part, own in zip(sizes, each, strict=True)}


def _check_sizes(rows: Mapping[str, Array], base: str) -> None:
    """Raise unless all have two dimensions and the pool's columns, and all texts the same number of rows."""
    for what, own in rows.items():
        if own.ndim != 2:
            raise InputError(f"{what} must have two dimensions (rows, features), not shape {own.shape}.")
        if own.shape[1] != rows[base].shape[1]:
            dims = f"{own.shape[1]} dimensions, {base} has {rows[base].shape[1]}"
            raise InputError(f"{what} has {dims}. Give rows of the same encoder.")
    counts = {what: len(own) for what, own in rows.items() if what.startswith("text ")}
    if len(set(counts.values())) > 1:
        raise InputError(f"rows of text differ: {counts}. Give one row per class in every tier.")


def _check_every_class(y: Array, kinds: Array, base: str) -> None:
    absent = np.setdiff1d(np.arange(len(kinds)), y)
    if len(absent):
        raise InputError(
            f"{base} has no row of {len(absent)} of {len(kinds)} classes, the first {kinds.tolist()[absent[0]]!r}. "
            "Give rows of every class, or leave the class out of text, classes and test."
        )


def _unit(given: Array, what: str, spans: list[str]) -> Array:
    """A matrix of unit rows that nobody else can change; rows that have unit length stay bit for bit as they are.

    Lengths that were not 1 are added to `spans`. A read-only file is not copied.
    """
    low, high, file = np.inf, 0.0, _file_behind(given)
    for here in row_blocks(len(given)):
        block = given[here]
        # By the largest numbers: squares may be too large or too small to add.
        largest = [np.abs(X.astype(np.float64)).max(axis=1) for X in (block, unit_rows(block, what, first=here.start))]
        lengths = largest[0] / largest[1]
        low, high = min(low, lengths.min()), max(high, lengths.max())
        _let_go(file)
    is_float = given.dtype in FLOATS
    if is_float and max(high - 1, 1 - low) <= NORM_TOLERANCE:
        return given if file is not None and given.flags.c_contiguous else np.array(given, order="C")
    if max(high - 1, 1 - low) > NORM_TOLERANCE:
        spans.append(f"{what} {low:.3g} to {high:.3g}")
    unit = np.empty(given.shape, given.dtype if is_float else working_dtype(given))
    for here in row_blocks(len(given)):
        unit[here] = unit_rows(given[here], what)
        _let_go(file)
    return unit


def _file_behind(array: Any) -> np.memmap | None:
    """The read-only file that an array is a view of."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array if array is not None and array.mode == "r" else None


def _let_go(file: np.memmap | None) -> None:
    """Free the pages of a file that were read; they would count as memory of this process."""
    if file is not None and hasattr(mmap, "MADV_DONTNEED"):
        file._mmap.madvise(mmap.MADV_DONTNEED)  # pyright: ignore[reportAttributeAccessIssue]


def _warn_of_shared_rows(name: str, pool: Float[Array, "N d"], test: Float[Array, "n d"]) -> None:
    if pool.dtype == test.dtype:
        count = int(np.isin(_fingerprints(test), _fingerprints(pool)).sum())
        if count:
            logger.warning(f"{name}: {count} of {len(test)} rows of test are in pool, too; heads may know them.")


def _fingerprints(X: Float[Array, "N d"]) -> UInt64[Array, " N"]:
    """A 64-bit hash of each row: the bits of its numbers times odd numbers, summed modulo 2^64."""
    bits = np.dtype(f"u{X.dtype.itemsize}")
    odd = np.random.default_rng(0).integers(0, 2**63, X.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    rows = row_blocks(len(X))
    return np.concatenate([np.ascontiguousarray(X[here]).view(bits).astype(np.uint64) @ odd for here in rows])


def _warn_of_text(name: str, X: Float[Array, "N d"], y: Int[Array, " N"], tiers: Mapping[str, Array]) -> None:
    """Say where text tells pictures apart less well than chance, or half as well as the means of a few of them."""
    if not tiers:
        return
    number, n_classes = shot_numbers(y), int(y.max()) + 1
    shots, tried = (np.flatnonzero((number < TRIED) & (number % 2 == half)) for half in (0, 1))
    if not len(tried):
        return
    means = unit_prototypes(class_means(X[shots].astype(np.float32), y[shots], n_classes))
    queries, asked = X[tried].astype(np.float32), y[tried]
    blocks = list(row_blocks(len(tried)))

    def right(prototypes: Array) -> float:
        scores = (accuracy(queries[here] @ prototypes.T, asked[here]) * len(asked[here]) for here in blocks)
        return sum(scores) / len(tried)

    by_means = right(means)
    for tier, prototypes in tiers.items():
        by_text = right(prototypes.astype(np.float32))
        if by_text < max(1 / n_classes, by_means / 2):
            logger.warning(
                f"{name}: text {tier} tells {by_text:.1%} of {len(tried)} pictures apart, means of up to {TRIED // 2} "
                f"pictures a class {by_means:.1%}, chance {1 / n_classes:.1%}: text and labels may not belong "
                "together. Check the order of the rows of text, and whether one encoder made both."
            )
