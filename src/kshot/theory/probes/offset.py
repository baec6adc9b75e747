"""The common offset: how much of the text–image distance it is, and whether it points anywhere special."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import squared_norms
from kshot.solvers.shrinkage import class_independent_share, common_offset
from kshot.theory.probes.section import Row
from kshot.theory.shift import squared_cosines
from kshot.types import Array


def offset_row(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> Row:
    """Share, length and position of Delta; `means` come from the pool (paper, Theorem 1 and its test)."""
    offset = common_offset(means, text)
    residual = text - means - offset
    return {
        "share": class_independent_share(means, text),
        "length": float(np.sqrt(offset @ offset)),
        "residual length": float(np.sqrt(squared_norms(residual).mean())),
        "cos² to class differences": float(squared_cosines(offset, means).mean()),
        "cos² to residuals": float(squared_cosines(offset, residual).mean()),
        "cosine to residuals": float(_cosines(offset, residual).mean()),
        "1/d": 1 / means.shape[1],
    }


def _cosines(offset: Float[Array, " d"], rows: Float[Array, "C d"]) -> Float[Array, " C"]:
    """cos(Delta, delta_c) of every class (paper, Cor. 1: eta); 0 where a remainder vanishes."""
    lengths = np.sqrt(squared_norms(rows) * (offset @ offset))
    return np.divide(rows @ offset, lengths, out=np.zeros(len(rows)), where=lengths > 0)
