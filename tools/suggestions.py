"""Does `kshot fit --suggest` choose better pictures than chance? A table for docs/promises.md.

`python -m tools.suggestions` draws two shots per class from each bundled open set and halves the other pictures: one
half is unlabelled, the other tests. Twice as many pictures as there are classes are labelled, as suggested and at
random (the mean of --times random choices), and the head is fitted again.
"""

import argparse
from dataclasses import replace

import numpy as np
from tools.open_pictures import OPEN_SETS, PictureDraw, draw_pictures

from kshot.methods.base import Classifier
from kshot.pictures.advice import advise
from kshot.pictures.suggest import entropy, most_useful

SHOTS, MORE = 2, 2


def fitted(drawn: PictureDraw, rows: np.ndarray) -> Classifier:
    """The advised head on the shots and the rows that were labelled."""
    X, y = np.vstack([drawn.shots.X, drawn.X[rows]]), np.append(drawn.shots.y, drawn.y[rows])
    shots = replace(drawn.shots, X=X, y=y)
    return shots.fit(advise(shots.counts).make())


def gain(dataset: str, seed: int, times: int) -> tuple[float, float, float]:
    """Accuracy before, with random pictures, with suggested ones."""
    drawn = draw_pictures(dataset, SHOTS, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(drawn.y))
    free, tests = np.array_split(order, 2)
    count = MORE * len(drawn.shots.text)

    def accuracy(rows: np.ndarray) -> float:
        return float(fitted(drawn, rows).score(drawn.X[tests], drawn.y[tests]))

    before = fitted(drawn, free[:0])
    own = entropy(before.predict_proba(drawn.X[free]).astype(np.float64))
    suggested = free[most_useful(drawn.X[free], drawn.shots.X, own, count)]
    chance = [accuracy(rng.choice(free, count, replace=False)) for _ in range(times)]
    return before.score(drawn.X[tests], drawn.y[tests]), float(np.mean(chance)), accuracy(suggested)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--dataset", action="append", help="One set; all unless given. Repeatable.")
    given = parser.parse_args()
    wanted = given.dataset or OPEN_SETS
    print("| | two per class | with random ones | with suggested ones | difference [95 %] |\n|---|---|---|---|---|")
    better = 0
    for dataset in wanted:
        found = 100 * np.array([gain(dataset, seed, given.times) for seed in range(given.draws)])
        gains = found[:, 2] - found[:, 1]
        value, half = gains.mean(), 1.96 * gains.std(ddof=1) / np.sqrt(len(gains))
        better += value > 0
        means = " | ".join(f"{x:.1f}" for x in found.mean(axis=0))
        print(f"| {dataset} | {means} | {value:+.1f} [{value - half:+.1f}, {value + half:+.1f}] |", flush=True)
    print(f"\nbetter than chance on average: {better} of {len(wanted)} sets")
