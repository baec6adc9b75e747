"""Proposition 5 (V5): variances and standard error for any covariance."""

import numpy as np

from kshot.paper.checks.simulate import power_law, support_means
from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator, worst_z
from kshot.solvers import shrinkage as plug_in
from kshot.solvers.rows import squared_norms
from kshot.theory import sampling

TITLE = "Sampling law for any covariance"
DIMENSION, SHOTS, TRACE = 256, 8, 0.2
REPLICATES = 40_000
REMAINDER = 0.08  # the delta method's own error, largest for the spike


def spectra(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """(eigenvalues, b): five decays with b anywhere, and a spike with b along it."""
    cases = []
    for decay in (0.0, 0.5, 1.0, 1.5, 2.0):
        b = rng.normal(size=DIMENSION)
        cases.append((power_law(DIMENSION, decay, TRACE), b / np.linalg.norm(b)))
    spiked = power_law(DIMENSION, 0.0, 0.75 * TRACE)
    spiked[0] += 0.25 * TRACE
    return [*cases, (spiked, np.eye(DIMENSION)[0])]


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    n = effort.replicates(REPLICATES)
    spread, variances = [], []
    cases = spectra(rng)
    for index, (spectrum, b) in enumerate(cases):
        square, along = float(spectrum @ spectrum), float(b**2 @ spectrum)
        draws = list(support_means(rng, spectrum, SHOTS, n))
        d2 = np.concatenate([squared_norms(b - means) for means, _ in draws])
        v_hat = np.concatenate([v for _, v in draws])
        for sample, truth in (
            (d2, sampling.distance_variance(along, square, SHOTS)),
            (v_hat, sampling.variance_variance(square, SHOTS)),
        ):
            variances.append(worst_z((sample - sample.mean()) ** 2, float(truth)))
        predicted = sampling.general_standard_error(1.0, TRACE, square, along, SHOTS)
        spread.append(abs(plug_in.james_stein_ratio(v_hat, d2).std() / predicted - 1))
        tick((index + 1) / len(cases))
    # What fewer replicates than the study's add to the error of a standard deviation.
    noise = 3 * (1 / np.sqrt(2 * n) - 1 / np.sqrt(2 * REPLICATES))
    return [
        Verdict("Prop. 5: variances of d̂² and v̂, |z|", max(variances), WORST_Z),
        Verdict("V5: standard error against SD, relative", float(max(spread)), REMAINDER + noise),
        Verdict("V5: reduces to the isotropic formula, relative", _isotropic_gap(), 1e-10),
        Verdict("d_eff counts the directions of a flat spectrum", _participation_gap(), 1e-12),
    ]


def _isotropic_gap() -> float:
    gaps = []
    for d, shots, g2 in ((64, 2, 0.3), (256, 4, 1.0), (512, 16, 2.0)):
        ratio = float(plug_in.optimal_ratio(np.array([g2]), np.array([1 / shots]))[0])
        general = sampling.general_standard_error(g2, 1.0, 1 / d, g2 / d, shots)
        gaps.append(abs(general / sampling.isotropic_standard_error(ratio, d, shots) - 1))
    return float(max(gaps))


def _participation_gap() -> float:
    """k equal eigenvalues use k directions, whatever their size."""
    sizes = np.array([1.0, 7.0, 256.0])
    return float(np.abs(sampling.participation_ratio(sizes * 0.3, sizes * 0.3**2) / sizes - 1).max())
