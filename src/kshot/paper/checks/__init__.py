"""One Monte Carlo check per claim: `kshot paper verify` runs them all.

A check is a module with a TITLE and `check(effort, tick)`, which returns verdicts. It looks every formula up
in its module when it runs, so that a test can put a wrong formula there and watch the check fail.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from kshot.paper.checks.trial import Effort, Verdict

NAMES = (
    "plug_in",
    "james_stein",
    "dominance",
    "sampling_isotropic",
    "sampling_general",
    "trace_square",
    "common_shift",
    "two_class_risk",
    "noise_aware",
    "error_formula",
    "best_on_path",
    "nesting",
    "shot_correction",
)


def load(name: str) -> ModuleType:
    return import_module(f"kshot.paper.checks.{name}")


def verify(effort: Effort, progress: Callable[[str, float], None]) -> list[Verdict]:
    """Every verdict, in order; `progress` hears the check's title and the share of it that is done."""
    verdicts = []
    for name in NAMES:
        module = load(name)

        def tick(done: float, title: str = module.TITLE) -> None:
            progress(title, done)

        verdicts += module.check(effort, tick)
    return verdicts
