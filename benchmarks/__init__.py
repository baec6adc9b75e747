"""Speed as ratios against named baselines, each pair measured in one run on one BLAS thread.

`python -m benchmarks NAME` runs a module here that has a `main`, without a name all; seconds are printed and never
asserted. With `--small` the same work is done at a small size: no ratio, but whatever was not done fails.
"""

import os

SMALL = bool(os.environ.get("KSHOT_SMALL"))
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
