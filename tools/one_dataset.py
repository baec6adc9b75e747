"""How often the interval over draws and test pictures covers: docs/protocol.md quotes it.

`python -m tools.one_dataset` simulates 2,000 studies of every design. `--records FOLDER` takes records with many draws
(`kshot run tools/one_dataset.toml`) and sets half of the draws, or `--draws` of them, against the others, every pair of
methods on every dataset: on the same test pictures, where pictures cancel and the spread of draws alone is checked, and
on other halves of the pictures.
"""

import argparse
from dataclasses import dataclass
from itertools import combinations, product
from math import sqrt

import numpy as np
from scipy.stats import norm, t

from kshot.results import load_records
from kshot.stats.crossed import crossed_variance, hits_of

STUDIES = 2000
DRAWS, PICTURES = (3, 5, 10), (100, 800)


@dataclass(frozen=True)
class Design:
    """One dataset, two methods; a picture is classified right where a sum of normal effects is positive, so that both
    accuracies are known. Standard deviations: `draws` of a draw, shared by both methods and all shots to one half;
    `noise` of a draw on a picture; of a picture 1 for both methods together and 0.4 for each."""

    seeds: int = 5
    pictures: int = 800
    shots: int = 2
    draws: float = 0.1
    noise: float = 0.7
    levels: tuple[float, float] = (0.5, 0.4)

    @property
    def truth(self) -> float:
        """The mean over all draws, pictures and shots."""
        spread = sqrt(1 + 0.4**2 + self.draws**2 + self.noise**2)
        first, second = (np.mean([norm.cdf((mu + 0.3 * k) / spread) for k in range(self.shots)]) for mu in self.levels)
        return float(first - second)


def simulated(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Differences of hits, one row a cell, and the seed of each row."""
    S, n = design.seeds, design.pictures
    shared, hard = rng.normal(size=(S, 1)), rng.normal(size=n)
    own = 0.4 * rng.normal(size=(2, n))
    cells = []
    for k in range(design.shots):
        hits = []
        for method, level in enumerate(design.levels):
            draw = design.draws * sqrt(0.5) * (shared + rng.normal(size=(S, 1)))
            noise = design.noise * rng.standard_normal((S, n), np.float32)
            hits.append(level + 0.3 * k + hard + own[method] + draw + noise > 0)
        cells.append(np.subtract(*hits, dtype=np.int8))
    return np.concatenate(cells), np.tile(np.arange(S), design.shots)


def covered(design: Design, studies: int = STUDIES, seed: int = 0) -> float:
    rng, truth, held = np.random.default_rng(seed), design.truth, 0
    for _ in range(studies):
        differences, seeds = simulated(design, rng)
        found = crossed_variance(differences, seeds)
        assert found is not None
        held += abs(differences.mean() - truth) <= half_width(*found)
    return held / studies


def half_width(variance: float, uncertainty: float) -> float:
    return float(t.ppf(0.975, max(variance**2 / uncertainty, 1)) * sqrt(variance)) if uncertainty else 0.0


def halves(folder: str, draws: int = 0, repeats: int = 40) -> dict[str, np.ndarray]:
    """By dataset: how often the gap between two parts of its draws lies within the interval of that gap, on the same
    pictures and on other ones."""
    whole, rng = load_records(folder).panel, np.random.default_rng(0)
    found = {}
    for name in whole.names("dataset"):
        own = whole.where(whole.dataset == name)
        hits = [np.stack([one for one in hits_of(own, method) if one is not None]) for method in own.methods]
        pairs = [first - second for first, second in combinations(hits, 2)]
        found[name] = np.mean([_held(pair, own.seed, rng, draws) for pair in pairs for _ in range(repeats)], axis=0)
    return found


def _held(differences: np.ndarray, seeds: np.ndarray, rng: np.random.Generator, draws: int) -> list[bool]:
    order, pictures = rng.permutation(np.unique(seeds)), rng.permutation(differences.shape[1])
    sides = [np.isin(seeds, part) for part in np.split(order, [draws or len(order) // 2])]
    same = [(differences[side], seeds[side]) for side in sides]
    apart = [(part[:, rows], own) for (part, own), rows in zip(same, np.array_split(pictures, 2), strict=True)]
    return [_agree(same, draws_only=True), _agree(apart)]


def _agree(sides: list, draws_only: bool = False) -> bool:
    gap = abs(sides[0][0].mean() - sides[1][0].mean())
    found = [_of_draws(*side) if draws_only else crossed_variance(*side) or (0, 0) for side in sides]
    return bool(gap <= half_width(*np.sum(found, axis=0)))


def _of_draws(differences: np.ndarray, seeds: np.ndarray) -> tuple[float, float]:
    """The same pictures on both sides: only draws, and the noise of a draw on a picture, are left."""
    means = np.array([differences[seeds == seed].mean() for seed in np.unique(seeds)])
    variance = float(means.var(ddof=1)) / len(means)
    return variance, variance**2 / (len(means) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", help="records of many draws")
    parser.add_argument("--draws", type=int, default=0, help="draws of the first part; half of them unless given")
    given = parser.parse_args()
    if given.records:
        found = halves(given.records, given.draws)
        for name, (same, other) in {**found, "all": np.mean(list(found.values()), axis=0)}.items():
            print(f"{name:16} same pictures {same:.1%}, other pictures {other:.1%}")
        return
    for seeds, pictures, draws, noise in product(DRAWS, PICTURES, (0.0, 0.1, 0.3), (0.4, 1.0)):
        design = Design(seeds, pictures, draws=draws, noise=noise)
        print(
            f"{seeds:3} draws {pictures:5} pictures, spread of draws {draws:.1f}, noise {noise}: {covered(design):.1%}"
        )


if __name__ == "__main__":
    main()
