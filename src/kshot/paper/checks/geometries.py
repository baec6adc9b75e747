"""Random class pairs with a covariance of any shape, and margins computed directly from their vectors."""

from dataclasses import dataclass

import numpy as np

from kshot.paper.checks.simulate import power_law


@dataclass(frozen=True, slots=True)
class Pair:
    means: np.ndarray
    text: np.ndarray
    covariance: np.ndarray

    @property
    def u(self) -> np.ndarray:
        return self.means[0] - self.means[1]

    @property
    def delta(self) -> np.ndarray:
        gap = self.text - self.means
        return (gap[0] - gap[1]) / 2

    def margin(self, w: np.ndarray) -> float:
        return float(self.u @ w / np.sqrt(w @ self.covariance @ w))

    def margins_on_path(self, s: np.ndarray) -> np.ndarray:
        """The same along u + 2s·delta for many s at once; the covariance is applied to u and delta once."""
        u, step = self.u, 2 * self.delta
        spread = u @ self.covariance @ u + s * (2 * (u @ self.covariance @ step) + s * (step @ self.covariance @ step))
        return (u @ u + s * (u @ step)) / np.sqrt(spread)


def random_pair(rng: np.random.Generator, d: int, decay: float) -> Pair:
    means = rng.normal(size=(2, d)) / np.sqrt(d)
    text = means + rng.normal(size=d) + rng.uniform(0.2, 2) * rng.normal(size=(2, d)) / np.sqrt(d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return Pair(means, text, (rotation * power_law(d, decay, 1.0)) @ rotation.T)


def random_pairs(rng: np.random.Generator, count: int) -> list[Pair]:
    return [random_pair(rng, int(rng.integers(6, 60)), float(rng.uniform(0, 2))) for _ in range(count)]
