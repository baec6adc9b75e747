"""Speed as ratios against named baselines, in one run, on one thread.

The thread limits have to be in the environment before numpy is loaded, hence their place.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
