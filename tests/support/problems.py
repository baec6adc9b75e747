"""The problems of `kshot.testing`, under a short name, all public heads, and parameters that make them quick."""

import inspect

import kshot
from kshot.methods.base import Classifier
from kshot.testing.problems import Problem as Problem
from kshot.testing.problems import problem as problem

# Fewer steps and coarser grids of the same recipe, where the whole of it would take minutes here.
SHORTER = {
    "cross_modal_lp": {"iterations": 200},
    "cross_modal_lp_wiseft": {"iterations": 200},
    "ape_val": {"beta_points": 10},
}

PUBLIC = {name: getattr(kshot, name) for name in kshot.__all__}
HEADS = {
    name: own
    for name, own in PUBLIC.items()
    if isinstance(own, type) and issubclass(own, Classifier) and own is not Classifier
}
QUICK = {"epochs": 3, "iterations": 3, "beta_points": 5, "alpha_points": 3, "max_iterations": 3}


def quick(head: type[Classifier]) -> dict[str, int]:
    """Those of the QUICK parameters that a head has."""
    return {name: value for name, value in QUICK.items() if name in inspect.signature(head).parameters}
