"""Sampling error of the plug-in ratio: Propositions 4 and 5, and the unbiased tr(Sigma²)."""

from itertools import permutations

import numpy as np
from scipy.stats import kstest

from kshot.solvers import rows
from kshot.solvers.rows import squared_norms
from kshot.theory import sampling
from kshot.theory.checks.trial import WORST_Z, Effort, Verdict, power_law, support_means, worst_z

REPLICATES = 40_000
# The delta method's own error: O(1/d) under isotropy, largest for the spike otherwise.
ISOTROPIC_REMAINDER, GENERAL_REMAINDER = 0.02, 0.08
KOLMOGOROV = 1.95  # of sqrt(n)·distance, exceeded once in a thousand
DIMENSION, SHOTS, TRACE = 256, 8, 0.2


def sampling_isotropic(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Proposition 4: the two laws, their independence, and the standard error of the ratio under isotropy."""
    n = effort.replicates(REPLICATES)
    distance, correlation, spread, delta = [], [], [], []
    # v = 1/K: from a ratio near one half to one near 0.95.
    for d, shots, g2 in ((128, 2, 0.6), (256, 4, 0.25), (256, 4, 2.0), (256, 16, 1.0)):
        v = 1 / shots
        means, v_hat = support_means(rng, power_law(d, 0.0, 1.0), shots, n)
        d2 = squared_norms(np.full(d, np.sqrt(g2 / d)) - means)
        of_d2, of_v = sampling.distance_law(g2, v, d), sampling.variance_law(v, d, shots)
        for sample, law in ((d2, of_d2), (v_hat, of_v)):
            distance.append(kstest(sample, law.cdf).statistic * np.sqrt(n))
        correlation.append(abs(np.corrcoef(d2, v_hat)[0, 1]) * np.sqrt(n))
        ratio = float(rows.optimal_ratio(np.array([g2]), np.array([v]))[0])
        predicted = sampling.isotropic_standard_error(ratio, d, shots)
        spread.append(abs(rows.james_stein_ratio(v_hat, d2).std() / predicted - 1))
        by_delta = np.sqrt(of_v.var() / (g2 + v) ** 2 + v**2 * of_d2.var() / (g2 + v) ** 4)
        delta.append(abs(by_delta / predicted - 1))
    noise = WORST_Z / np.sqrt(2 * n)
    return [
        Verdict("Prop. 4: d̂² and v̂ follow their laws, √n·KS", max(distance), KOLMOGOROV),
        Verdict("Prop. 4: d̂² and v̂ are uncorrelated, √n·|r|", max(correlation), WORST_Z),
        Verdict("Prop. 4: standard error from the two laws, relative", float(max(delta)), 1e-10),
        Verdict("Prop. 4: standard error against SD, relative", float(max(spread)), ISOTROPIC_REMAINDER + noise),
    ]


def sampling_general(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Proposition 5 (V5): variances and standard error for any covariance."""
    n = effort.replicates(REPLICATES)
    spread, variances = [], []
    for spectrum, b in _spectra(rng):
        square, along = float(spectrum @ spectrum), float(b**2 @ spectrum)
        means, v_hat = support_means(rng, spectrum, SHOTS, n)
        d2 = squared_norms(b - means)
        for sample, truth in (
            (d2, sampling.distance_variance(along, square, SHOTS)),
            (v_hat, sampling.variance_variance(square, SHOTS)),
        ):
            variances.append(worst_z((sample - sample.mean()) ** 2, float(truth)))
        predicted = sampling.general_standard_error(1.0, TRACE, square, along, SHOTS)
        spread.append(abs(rows.james_stein_ratio(v_hat, d2).std() / predicted - 1))
    # What fewer replicates than the study's add to the error of a standard deviation.
    noise = 3 * (1 / np.sqrt(2 * n) - 1 / np.sqrt(2 * REPLICATES))
    # k equal eigenvalues use k directions, whatever their size.
    sizes = np.array([1.0, 7.0, 256.0])
    participation_gap = np.abs(sampling.participation_ratio(sizes * 0.3, sizes * 0.3**2) / sizes - 1).max()
    return [
        Verdict("Prop. 5: variances of d̂² and v̂, |z|", max(variances), WORST_Z),
        Verdict("V5: standard error against SD, relative", float(max(spread)), GENERAL_REMAINDER + noise),
        Verdict("V5: reduces to the isotropic formula, relative", _isotropic_gap(), 1e-10),
        Verdict("d_eff counts the directions of a flat spectrum", float(participation_gap), 1e-12),
    ]


def _spectra(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """(eigenvalues, b): five decays with b anywhere, and a spike with b along it."""
    cases = []
    for decay in (0.0, 0.5, 1.0, 1.5, 2.0):
        b = rng.normal(size=DIMENSION)
        cases.append((power_law(DIMENSION, decay, TRACE), b / np.linalg.norm(b)))
    spiked = power_law(DIMENSION, 0.0, 0.75 * TRACE)
    spiked[0] += 0.25 * TRACE
    return [*cases, (spiked, np.eye(DIMENSION)[0])]


def _isotropic_gap() -> float:
    gaps = []
    for d, shots, g2 in ((64, 2, 0.3), (256, 4, 1.0), (512, 16, 2.0)):
        ratio = float(rows.optimal_ratio(np.array([g2]), np.array([1 / shots]))[0])
        general = sampling.general_standard_error(g2, 1.0, 1 / d, g2 / d, shots)
        gaps.append(abs(general / sampling.isotropic_standard_error(ratio, d, shots) - 1))
    return float(max(gaps))


def trace_square(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """The unbiased tr(Sigma²) equals the sum over distinct rows that defines it, and is unbiased."""
    d, gaps = 8, []
    for n in (4, 5, 6):
        rows = 2 + rng.normal(size=(n, d))
        # Mean of ⟨x_i − x_j, x_k − x_l⟩²/4 over distinct i, j, k, l.
        terms = [((rows[i] - rows[j]) @ (rows[k] - rows[l])) ** 2 for i, j, k, l in permutations(range(n), 4)]
        gaps.append(abs(sampling.unbiased_trace_of_square(rows) / (float(np.mean(terms)) / 4) - 1))
    scale = np.sqrt(power_law(d, 1.0, 1.0))
    # A skewed law with a mean far from zero: the estimator assumes neither normality nor centring.
    draws = 3.0 + scale * (rng.exponential(size=(effort.replicates(20_000), 6, d)) - 1)
    estimates = np.array([sampling.unbiased_trace_of_square(draw) for draw in draws])
    return [
        Verdict("tr(Sigma²): closed form against its sum, relative", float(max(gaps)), 1e-10),
        Verdict("tr(Sigma²): unbiased at any mean, |z|", worst_z(estimates, float((scale**4).sum())), WORST_Z),
    ]
