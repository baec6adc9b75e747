"""A cache into the store: every file is read and checked first, then all parts are written at once."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.data.catalog import datasets
from kshot.data.store import Manifest, Store, view_part
from kshot.encode.caches.arrays import Address, read_array
from kshot.encode.caches.layouts import Cache
from kshot.encode.caches.reading import Rows, names_in_labels, read_names, read_rows, read_text, without_numbers
from kshot.encode.caches.views import CLAP_VIEWS, split_views
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.prompts import Prompts, encode_tiers, tier_prompts
from kshot.encode.sources.source import Listed
from kshot.encode.targets import Encoding
from kshot.errors import FeatureError, InputError, KshotError
from kshot.files import TEMPORARY_PREFIX, sha256
from kshot.solvers.rows import class_counts, class_means, row_blocks, squared_norms, unit_rows
from kshot.types import Array, Labelled

SAME_ROW = 0.999
# Means over augmented views scatter about 20 % less than single crops; two halves of one set differ by below 10 %.
AVERAGED = 0.9
MOST_PRODUCTS = 10**11
ENOUGH_ROWS = 20_000


@dataclass(frozen=True)
class Imported:
    """A checked cache in memory; `notes` are printed, and with the files' hashes are the manifests' `provenance`."""

    parts: dict[str, Rows]
    text: dict[str, Array]
    classes: tuple[str, ...]
    notes: list[str]
    provenance: dict[str, Any]

    @property
    def dim(self) -> int:
        return next(iter(self.parts.values())).X.shape[1]

    @property
    def test(self) -> Labelled:
        """The rows that zero-shot is measured on."""
        rows = self.parts.get("test") or self.parts["all"]
        return Labelled(rows.X, rows.y)


def read_cache(cache: Cache, recipe: str = "", count: int | None = None) -> Imported:
    """Read and check every file; an error names the first one that does not fit.

    `recipe` is the one of augmented views, `count` how many there are of each picture; found out unless given.
    """
    given = set(cache.parts) - {"val", "views"} | ({"pool"} if "views" in cache.parts else set())
    if given != {"pool", "test"} and set(cache.parts) != {"all"}:
        raise InputError(
            f"give --pool and --test (and perhaps --val and --views), or --all; given was {', '.join(cache.parts)}."
        )
    labels = [files.labels for files in cache.parts.values()]
    names = read_names(cache.classes) if cache.classes is not None else names_in_labels(labels)
    if cache.classes is None and names is not None and cache.text:
        raise InputError(
            f"{labels[0]} holds names, and the rows of {next(iter(cache.text.values()))} have none, so their order is "
            "unknown. Give --classes FILE with the names in the order of text's rows."
        )
    parts = {part: read_rows(part, files, names) for part, files in cache.parts.items()}
    view_rows: list[Rows] = []
    if "views" in parts:
        views, many = parts.pop("views"), count or (CLAP_VIEWS if cache.layout == "clap" else None)
        pool, view_rows = split_views(parts.get("pool"), views, many)
        parts["pool"] = pool
        made = replace(cache.parts["views"], averaged=True)
        cache = replace(cache, parts={part: cache.parts.get(part, made) for part in parts})
    first = next(iter(cache.parts))
    dim = parts[first].X.shape[1]
    for part, rows in parts.items():
        if rows.X.shape[1] != dim:
            raise InputError(
                f"{cache.parts[part].features} has {rows.X.shape[1]} dimensions, but {cache.parts[first].features} has "
                f"{dim}: they come from two backbones."
            )
    notes = [note for rows in parts.values() for note in rows.notes]
    text: dict[str, Array] = {}
    for tier, address in cache.text.items():
        text[tier], more = read_text(address, dim, cache.parts[first].features)
        notes += more
    classes = _classes(cache, parts, text, names)
    if names is None:
        notes.append("no class names are known; classes are numbered. Give --classes FILE to name them")
    else:
        notes += [
            f"two classes are called '{name[:-4]}'; the second is '{name}'" for name in names if name[-4:] == " (2)"
        ]
    notes += _notes(cache, parts)
    notes += [_about_unused(path, dim) for path in cache.unused]
    recipe = recipe or ("clap" if cache.layout == "clap" else "tip")
    stored = {view_part("pool", recipe, number): rows for number, rows in enumerate(view_rows)}
    notes = list(dict.fromkeys(notes))
    files = {path.name: sha256(path) for path in cache.files()}
    provenance = {"layout": cache.layout, "files": files, "notes": notes}
    return Imported({**parts, **stored}, text, classes, notes, provenance)


def write_cache(
    found: Imported, store: Store, dataset: str, backbone: str, text: tuple[Encoding, Prompts] | None, **about: Any
) -> list[Manifest]:
    """Write all parts and tiers aside, and encode the prompts of `text`; then move them into place as one folder."""
    target = store.path(dataset, backbone, "any").parent
    about["provenance"] = found.provenance
    try:
        store.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=store.root) as folder:
            aside = Store(folder)
            for part, rows in found.parts.items():
                aside.write_images(dataset, backbone, part, rows.X, rows.y, rows.ids, found.classes, **about)
            for tier, T in found.text.items():
                aside.write_text(dataset, backbone, tier, T, None, found.classes, **about)
            if text is not None:
                job, prompts = text
                encode_tiers(job, aside, prompts)
            manifests = list(aside.manifests())
            there = {m.part: m.sha256 for m in store.manifests() if (m.dataset, m.backbone) == (dataset, backbone)}
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                aside.path(dataset, backbone, "any").parent.rename(target)
            elif there != {m.part: m.sha256 for m in manifests}:
                raise FeatureError(
                    f"{target} holds other features. Delete it, or give another --dataset, --backbone or --features."
                )
            return manifests
    except OSError as error:
        raise KshotError(f"cannot write {target}: {error.strerror or error}.") from error


def text_job(
    found: Imported, dataset: str, backbone: str, tiers: Sequence[str], template: str | None, weights: Path | None
) -> tuple[Encoding, Prompts]:
    """An encoder whose dimension fits, and the prompts of these tiers of the class names."""
    entry = datasets().get(dataset)
    source = Listed(dataset, found.classes, (), entry.templates if entry else ())
    named = replace(source, classes=without_numbers(found.classes))
    prompts = tier_prompts(dataset, named, template or (entry.template if entry else None), tiers, {})
    encoder = load_encoder(backbone, weights)
    if encoder.dim != found.dim:
        raise InputError(f"the features have {found.dim} dimensions, but {backbone} gives {encoder.dim}.")
    return Encoding(dataset, stored_name(backbone), source, encoder), prompts


def _classes(
    cache: Cache, parts: dict[str, Rows], text: dict[str, Array], names: tuple[str, ...] | None
) -> tuple[str, ...]:
    """The class names; raise unless names, text rows and labels count the same classes."""
    counts = {str(cache.text[tier]): len(T) for tier, T in text.items()}
    if names is not None:
        counts[str(cache.classes or "the labels")] = len(names)
    highest, where = max((int(rows.y.max()), str(cache.parts[part].labels)) for part, rows in parts.items())
    total = next(iter(counts.values()), highest + 1)
    for file, count in counts.items():
        if count != total:
            raise InputError(f"{next(iter(counts))} has {total} classes, but {file} has {count}.")
        if highest >= count:
            raise InputError(f"{where} has the label {highest}, but {file} has {count} classes (0..{count - 1}).")
    part = "pool" if "pool" in parts else "all"
    absent = np.setdiff1d(np.arange(total), parts[part].y)
    if len(absent):
        raise InputError(
            f"{cache.parts[part].labels} has no row of class {absent[0]}, nor of {len(absent) - 1} others; "
            f"{next(iter(counts), 'the other labels')} has {total} classes."
        )
    return names if names is not None else tuple(f"class {number}" for number in range(total))


def _notes(cache: Cache, parts: dict[str, Rows]) -> list[str]:
    """Notes on half precision, averaged views, and test rows that are also in the pool; nothing is corrected."""
    half = [cache.parts[part].features.file.name for part, rows in parts.items() if rows.X.dtype == np.float16]
    notes = [f"float16 rows, stored as they are: {', '.join(dict.fromkeys(half))}"] if half else []
    notes += [
        f"{files.features.file.name}: pool rows are means over augmented views; test rows are not"
        for files in cache.parts.values()
        if files.averaged
    ]
    if "pool" in parts:
        pool, test = parts["pool"], parts["test"]
        shared, compared = _shared_rows(pool.X, test.X)
        if shared:
            notes.append(f"{shared} of {compared} test rows are (nearly) rows of the pool: the same pictures?")
        ratio = _scatter(pool) / max(_scatter(test), 1e-12)
        if ratio < AVERAGED and not cache.parts["pool"].averaged:
            notes.append(
                f"pool rows scatter {100 * (1 - ratio):.0f} % less within classes than test rows: means over views?"
            )
    return notes


def _shared_rows(pool: Float[Array, "N d"], test: Float[Array, "n d"]) -> tuple[int, int]:
    """How many test rows have (nearly) the same row in the pool, and how many were compared."""
    step = max(1, -(-pool.size * len(test) // MOST_PRODUCTS))
    compared = unit_rows(test[::step], "test")
    nearest = np.full(len(compared), -1.0, np.float32)
    for rows in row_blocks(len(pool)):
        block = unit_rows(pool[rows], "pool")
        np.maximum(nearest, (compared @ block.T).max(axis=1), out=nearest)
    return int(np.count_nonzero(nearest > SAME_ROW)), len(compared)


def _scatter(part: Rows) -> float:
    """Mean squared distance of unit rows to their class mean, unbiased; of every n-th row where there are many."""
    step = max(1, len(part.y) // ENOUGH_ROWS)
    X = unit_rows(part.X[::step], "features")
    present, y = np.unique(part.y[::step], return_inverse=True)
    means, counts = class_means(X, y, len(present)), class_counts(y, len(present))
    between = float(counts @ squared_norms(means))
    return (len(X) - between) / max(1, len(X) - len(present))


def _about_unused(path: Path, dim: int) -> str:
    """A note on a file that is not part of the layout, or has the dimensions of another backbone."""
    try:
        shape = read_array(Address(path)).shape
    except KshotError as error:
        return f"left out: {error}"
    size = " × ".join(map(str, shape))
    if len(shape) == 2 and dim not in shape:
        return f"refused {path.name}: it is {size}, these features have {dim} dimensions; it is another backbone's"
    return f"left out {path.name} ({size}): no part of the layout"
