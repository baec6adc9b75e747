"""The forecast of `kshot plan` against the run itself, on four generated strata of different size.

Compared is processor time, of this process's workers and all they start with: waiting for a busy machine is nobody's
forecast. Each stratum is planned with nothing recorded, then again with the others' records lying around.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from kshot.bench.engines.local import LocalEngine
from kshot.bench.plan import forecast
from kshot.bench.work import find_work

from benchmarks.measure import children_seconds
from kshot.bench.records import Records
from kshot.bench.run import compute, open_run
from kshot.bench.study import Study, load_study
from kshot.data.simulated import BACKBONE, TIER, World, write
from kshot.data.store import Store

GEOMETRY = {"between": 0.3, "within": 0.5, "text_signal": 0.6, "text_error": 0.3}
# The first three are the sizes of `kshot paper reproduce --small`.
STRATA = (
    World("EuroSAT-size", 10, dim=512, pool_per_class=100, test_per_class=540, **GEOMETRY),
    World("Pets-size", 37, dim=512, pool_per_class=80, test_per_class=99, **GEOMETRY),
    World("DTD-size", 47, dim=512, pool_per_class=40, test_per_class=40, **GEOMETRY),
    World("hundred-classes", 100, dim=1024, pool_per_class=40, test_per_class=25, **GEOMETRY),
)
SHOTS, SEEDS = (1, 4, 16), (0,)
LEAST, MOST = 0.7, 1.3


def study_on(world: World) -> Study:
    """The paper's fifteen methods on one stratum."""
    paper = load_study("paper")
    grid = replace(
        paper.grids[0], datasets=(world.name,), backbones=(BACKBONE,), tiers=(TIER,), shots=SHOTS, seeds=SEEDS
    )
    return replace(paper, name=world.name, grids=(grid,))


def forecast_seconds(world: World, folder: Path, around: list[Path]) -> float:
    work = find_work(study_on(world), Store(folder / "features"), Records(folder / "nothing"))
    return forecast([work], around)[0].cpu_seconds


def measured_seconds(world: World, folder: Path) -> float:
    records = Records(folder / "records" / world.name)
    work = open_run(study_on(world), folder / "features", records)
    before = children_seconds()
    compute(work, folder / "features", records, LocalEngine(2))
    return children_seconds() - before


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for world in STRATA:
            write(world, Store(folder / "features"))
        cold = {world.name: forecast_seconds(world, folder, []) for world in STRATA}
        took = {world.name: measured_seconds(world, folder) for world in STRATA}
        missed = 0
        for world in STRATA:
            others = [folder / "records" / other.name for other in STRATA if other is not world]
            warm = forecast_seconds(world, folder, others)
            ratios = [seconds / took[world.name] for seconds in (cold[world.name], warm)]
            missed += any(not LEAST <= ratio <= MOST for ratio in ratios)
            sizes = f"{world.classes} classes, d = {world.dim}"
            print(
                f"{world.name} ({sizes}): measured {took[world.name]:.1f} s, forecast / measured {ratios[0]:.2f} with "
                f"nothing recorded, {ratios[1]:.2f} with the others' records (allowed {LEAST} to {MOST})",
                flush=True,
            )
    return missed


if __name__ == "__main__":
    sys.exit(main())
