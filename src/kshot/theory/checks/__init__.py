"""One Monte Carlo check per claim, in the module named after the closed forms it checks: `kshot paper verify` runs all.

A check looks every formula up in its module when it runs, so that a test can put a wrong formula there and see the
check fail.
"""

from kshot.theory.checks import blend_error, capacity, decision, sampling
from kshot.theory.checks.trial import Check

CHECKS = {
    "plug_in": Check("MSE-optimal ratio and its plug-in", blend_error.plug_in),
    "james_stein": Check("Classical James–Stein coefficient", blend_error.james_stein),
    "dominance": Check("Dominance over the mean", blend_error.dominance),
    "sampling_isotropic": Check("Sampling law under isotropy", sampling.sampling_isotropic),
    "sampling_general": Check("Sampling law for any covariance", sampling.sampling_general),
    "trace_square": Check("Unbiased tr(Sigma²)", sampling.trace_square),
    "common_shift": Check("Common shifts are decision-free", decision.common_shift),
    "two_class_risk": Check("Two-class risk", decision.two_class_risk),
    "noise_aware": Check("Noise-aware shrinkage", decision.noise_aware),
    "error_formula": Check("Error of a direction", capacity.error_formula),
    "best_on_path": Check("Best direction on the blend path", capacity.best_on_path),
    "nesting": Check("Nested margins", capacity.nesting),
    "shot_correction": Check("K-correction", blend_error.shot_correction),
}
