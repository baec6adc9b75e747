"""The whole paper on generated features, from nothing to report and comparison: `python tools/rehearse.py FOLDER`.

With names of datasets behind the folder, of these only. Every encoder, tier and shot count of the paper, the matrix on
two draws and the other arms on one. All of it is labelled simulated: it shows that the road is whole and says nothing
about the paper.
"""

import logging
import os
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from kshot.bench.study import Study, load_study
from kshot.data.store import Store
from kshot.paper.folders import MATRIX_STUDY
from kshot.paper.rehearsal import COOP, COOP_BACKBONES, VIEWED_BACKBONE, WORLDS, write_rehearsal
from kshot.paper.reproduce import AUGMENTATION, PRECISION, Reproduction, Selection, arms, compare_arms, write_reports

# Arms that have generated features for some of their encoders only.
ENCODERS = {"coop": COOP_BACKBONES, AUGMENTATION: (VIEWED_BACKBONE,)}
# The matrix meets every prompt tier at every shot count; the arm on tiers is pooled over these.
SHOTS = {"tiers": (1, 16)}
# The paper tells how far draws of its matrix differ.
SEEDS = {MATRIX_STUDY: (0, 1)}


def rehearse(folder: Path, datasets: Collection[str]) -> list[str]:
    """Do everything in this folder and give back what the comparison says."""
    features, records = folder / "features", folder / "records"
    write_rehearsal(Store(features), datasets)
    studies = [_short(load_study(arm), {*datasets, *(name + COOP for name in datasets)}) for arm in arms()]
    road = Reproduction(features, records, Selection(studies), workers=os.cpu_count() or 1)
    road.matrix()
    road.probes()
    road.arms()
    write_reports(features, records, [MATRIX_STUDY, AUGMENTATION, PRECISION])
    return compare_arms(records)


def _short(study: Study, datasets: Collection[str]) -> Study:
    changed = {"backbones": ENCODERS.get(study.name), "shots": SHOTS.get(study.name)}
    known = {axis: values for axis, values in changed.items() if values}
    grids = [
        replace(grid, seeds=SEEDS.get(study.name, (0,)), datasets=here, **known)
        for grid in study.grids
        if (here := tuple(name for name in grid.datasets if name in datasets))
    ]
    return replace(study, grids=tuple(grids), answers=False)


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING)
    logging.getLogger("kshot").setLevel(logging.INFO)
    for sentence in rehearse(Path(sys.argv[1]), sys.argv[2:] or tuple(WORLDS)):
        print(sentence)
