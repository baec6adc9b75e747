"""Speed as ratios against named baselines, each pair measured in one run on one BLAS thread.

`python -m benchmarks` runs every module here that has a `main`; seconds are printed and never asserted.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
