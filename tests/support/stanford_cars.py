"""Methods on the real CLIP features of Stanford Cars."""

import numpy as np

from kshot.methods import registry


def accuracy(cars, name, shots, draw=0, **params) -> float:
    """Percent right on the evaluation pictures after the given draw of shots."""
    rng, y = np.random.default_rng(draw), cars["train16_y"]
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:shots] for c in range(196)])
    head = registry.create(name, **params).fit(cars["train16_x"][rows], y[rows], text=cars["text"])
    return 100 * head.score(cars["eval_x"], cars["eval_y"])


def mean_accuracy(cars, name, shots, seeded=True) -> float:
    """Over five draws; a trained head starts from the draw's own seed."""
    return float(
        np.mean([accuracy(cars, name, shots, draw, **({"seed": draw} if seeded else {})) for draw in range(5)])
    )
