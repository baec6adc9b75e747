"""Gauss-probe, with all that it chooses, against our own CLAP on the same shots."""

from benchmarks.measure import against_clap
from kshot.methods.gauss_probe import GaussProbe


def main() -> int:
    return against_clap("Gauss-probe", GaussProbe, required=6, most_gigabytes=1)
