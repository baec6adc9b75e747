"""Augmented views in the store: opened as a whole, read for the drawn pictures only."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from kshot.data.store import ImageFeatures, Manifest, Store, view_part
from kshot.errors import FeatureError
from kshot.solvers.rows import frozen, unit_rows
from kshot.types import Array, Views

# Least share of the picture's area that a crop keeps. `tip`: the official code of Tip-Adapter, GDA and LP++; `clap`:
# CoOp's trainer, which CLAP, CLIP-Adapter and HOSO use.
RECIPES = {"tip": 0.5, "clap": 0.08}


@dataclass(frozen=True)
class StoredViews:
    """One recipe's views of the part that supports are drawn from, one stored part per view."""

    parts: tuple[ImageFeatures, ...]
    dtype: str

    def of(self, ids: Sequence[str]) -> Float[Array, "E N d"]:
        """Unit rows of these pictures, view by view."""
        absent = [name for row in self._rows for name in ids if name not in row]
        if absent:
            raise FeatureError(f"the stored views lack the picture {absent[0]}. Delete them and encode them again.")
        views = []
        for part, row in zip(self.parts, self._rows, strict=True):
            X = np.asarray(part.X[[row[name] for name in ids]])
            views.append(unit_rows(X, "views", np.dtype(self.dtype)))
        return frozen(np.stack(views))

    @cached_property
    def _rows(self) -> list[dict[str, int]]:
        """The row of each picture, view by view."""
        return [{name: row for row, name in enumerate(part.ids)} for part in self.parts]

    @property
    def hashes(self) -> tuple[str, ...]:
        return tuple(part.manifest.sha256 for part in self.parts)

    @property
    def digest(self) -> str:
        """One hash of all views, for the records."""
        return hashlib.sha256("\n".join(self.hashes).encode()).hexdigest()


def open_views(store: Store, base: Manifest, asked: Views, dtype: str) -> StoredViews:
    """Open the views of a part; raise if they were made of other pictures."""
    original = store.images(base.dataset, base.backbone, base.part)
    labels = dict(zip(original.ids, original.y.tolist(), strict=True))
    parts = []
    for number in range(asked.count):
        part = store.images(base.dataset, base.backbone, view_part(base.part, asked.recipe, number))
        own = zip(part.ids, part.y.tolist(), strict=True)
        if any(labels.get(name) != label for name, label in own) or part.X.shape[1] != base.dim:
            raise FeatureError(
                f"{base.dataset}/{base.backbone}/{part.manifest.part} holds views of other pictures than {base.part}. "
                "Delete it and encode the views again."
            )
        parts.append(part)
    return StoredViews(tuple(parts), dtype)
