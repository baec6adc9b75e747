"""Writes src/kshot/bench/seconds.json, from which `kshot plan` forecasts: processor seconds of every built-in method,
as it is and with the parameters that the studies of the package give it.

    python -m benchmarks.seconds

Each method is timed at the sizes below, where that is affordable, on one thread and on generated features. The speed of
a matrix product at that moment is kept beside the seconds; a plan scales them by its own machine's.
"""

import json

from kshot.bench.costs import TABLE, CellSize, product_peak

from benchmarks.timing import time_methods
from kshot.bench.study import MethodSpec, bundled_studies, load_study
from kshot.methods import registry
from kshot.types import Views

SIZES = (
    CellSize(10, 1, 1280, 420, n_pool=280),
    CellSize(10, 4, 512, 5400, n_pool=1000),
    CellSize(10, 16, 512, 3000, n_pool=900),
    CellSize(35, 4, 1280, 300, n_pool=834),
    CellSize(37, 2, 512, 3669, n_pool=2944),
    CellSize(47, 8, 768, 1880, n_pool=1880),
    CellSize(47, 16, 512, 1880, n_pool=1880),
    CellSize(100, 2, 512, 3333, n_pool=6667),
    CellSize(100, 16, 1024, 2500, n_pool=4000),
    CellSize(250, 8, 512, 4000, n_pool=6000),
)
# Views multiply the rows, so fewer sizes will do.
VIEWED = SIZES[2:6:3]
VIEWS = Views("tip", 10)


def main() -> int:
    studied = (spec for name in bundled_studies() for spec in load_study(name).methods().values())
    varied = {spec.recipe: spec for spec in studied if spec.params and spec.use in registry.BUILTIN}
    specs = [*(MethodSpec(name, name) for name in registry.BUILTIN), *varied.values()]
    viewed = [MethodSpec(name, name, views=VIEWS) for name in registry.BUILTIN if registry.create(name).info.views]
    before = product_peak()
    found = time_methods(specs, SIZES, "float32")
    for subject, measured in time_methods(viewed, VIEWED, "float32").items():
        found.setdefault(subject, measured)
    rows = [
        [subject.method, subject.views, size.classes, size.shots, size.dim, size.n_test, size.n_pool, round(seconds, 6)]
        for subject, measured in sorted(found.items())
        for size, seconds in measured
    ]
    peak = (before + product_peak()) / 2
    lines = ",\n".join(map(json.dumps, rows))
    TABLE.write_text(f'{{"peak": {peak:.4g}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(found)} methods and variants, {len(rows)} timings at {peak / 1e9:.0f} billion operations a second")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
