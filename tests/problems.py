"""The problems of `kshot.testing`, under a short name, and methods that are quick on them."""

from kshot.testing.problems import Problem as Problem
from kshot.testing.problems import problem as problem

# Fewer steps and coarser grids of the same recipe, where the whole of it would take minutes here.
SHORTER = {
    "cross_modal_lp": {"iterations": 200},
    "cross_modal_lp_wiseft": {"iterations": 200},
    "ape_val": {"beta_points": 10},
}
