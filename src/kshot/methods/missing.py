"""Rows that text gives to classes without shots.

A class without any shot is fitted in one of two ways. A method that sees text and shots alone learns from the other
classes, and text gives the class a row in the head's own units. Over the shots, with the mean over the other classes
taken out because a softmax ignores it, the head's scores s are regressed on text:

    a = sum_ic z_ic·(s_ic − s̄_i) / sum_ic z_ic²,   z_ic = x_i·(t_c − t̄)

A class without shots then scores s̄(x) + a·x·(t_c − t̄). A head that is a multiple of text gets its own rows back, the
scores of the other classes stay as they are, and a linear head stays linear. To a method that sees further pictures the
class comes with one row: its text, moved as far as the other classes' pictures lie from theirs.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.rows import class_counts, unit_prototypes
from kshot.types import Array


def missing_class_rows(
    scores: Float[Array, "N S"], X: Float[Array, "N d"], text: Float[Array, "C d"], has_shots: Bool[Array, " C"]
) -> tuple[float, Float[Array, "U d"]]:
    """Fit the slope a, clipped at zero, to the head's scores of the shots; return it and a row for each class without
    shots. A picture's product with that row is the class's score minus the mean of the other classes' scores."""
    centre = text[has_shots].mean(axis=0)
    z = (X @ (text[has_shots] - centre).T).astype(np.float64)
    steps = float(np.vdot(z, z))
    # The means of z over the classes are zero, so those of the scores need not be taken out.
    slope = max(0.0, float(np.vdot(z, scores)) / steps) if steps else 0.0
    return slope, (slope * (text[~has_shots] - centre)).astype(text.dtype)


def fill_missing_classes(
    learnt: Float[Array, "S ..."], missing: Float[Array, "U ..."], has_shots: Bool[Array, " C"]
) -> Array:
    """One entry per class along the first axis; the missing ones are added to the mean of the learnt ones."""
    whole = np.empty((len(has_shots), *learnt.shape[1:]), learnt.dtype)
    whole[has_shots], whole[~has_shots] = learnt, learnt.mean(axis=0) + missing
    return whole


def with_stand_ins(
    rows: Float[Array, "N d"], y: Int[Array, " N"], views: Array | None, text: Float[Array, "C d"]
) -> tuple[Float[Array, "M d"], Int[Array, " M"], Array | None]:
    """Add a row for every class without shots: its text plus the mean offset between pictures and text.

    Most classes share that offset; plain text among pictures would win or lose by it alone.
    """
    empty = np.flatnonzero(class_counts(y, len(text)) == 0) if len(text) else np.empty(0, np.int64)
    if not len(empty):
        return rows, y, views
    seen = np.unique(y)
    offset = np.mean([rows[y == c].mean(axis=0) - text[c] for c in seen], axis=0)
    stand_ins = unit_prototypes(text[empty] + offset.astype(text.dtype))
    if views is not None:
        views = np.concatenate([views, np.broadcast_to(stand_ins, (len(views), *stand_ins.shape))], axis=1)
    return np.concatenate([rows, stand_ins]), np.concatenate([y, empty]), views
