"""Fold-GDA, search included, against our own CLAP on the same shots."""

from benchmarks.measure import against_clap
from kshot.methods.fold_gda import FoldGDA


def main() -> int:
    return against_clap("Fold-GDA", FoldGDA, required=4, most_gigabytes=3)
