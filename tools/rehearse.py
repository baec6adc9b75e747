"""The whole paper on generated features, from nothing to report and comparison: `python tools/rehearse.py FOLDER`.

Every dataset, encoder, tier and shot count of the paper on one draw, and on two where it tells how far draws differ.
All of it is labelled simulated: it shows that the road is whole and says nothing about the paper.
"""

import logging
import os
import sys
from dataclasses import replace
from pathlib import Path

from kshot.bench.study import Study, load_study
from kshot.datasets.rehearsal import COOP_BACKBONES, VIEWED_BACKBONE, write_rehearsal
from kshot.features.store import Store
from kshot.reproduction import MATRIX_STUDY
from kshot.road import AUGMENTATION, PRECISION, arms, compare_arms, compute_arms, write_reports

# Arms that have generated features for some of their encoders only.
ENCODERS = {"coop": COOP_BACKBONES, AUGMENTATION: (VIEWED_BACKBONE,)}
# The matrix meets every prompt tier at every shot count; the arm on tiers is pooled over these.
SHOTS = {"tiers": (1, 16)}
# Where the paper tells how far draws differ.
TWO_DRAWS = (2, 16)


def rehearse(folder: Path) -> list[str]:
    """Do everything in this folder and give back what the comparison says."""
    features, records = folder / "features", folder / "records"
    write_rehearsal(Store(features))
    compute_arms(features, records, [_short(load_study(arm)) for arm in arms()], workers=os.cpu_count() or 1)
    write_reports(features, records, [MATRIX_STUDY, AUGMENTATION, PRECISION])
    return compare_arms(records)


def _short(study: Study) -> Study:
    changed = {"backbones": ENCODERS.get(study.name), "shots": SHOTS.get(study.name)}
    known = {axis: values for axis, values in changed.items() if values}
    grids = [replace(grid, seeds=(0,), **known) for grid in study.grids]
    if study.name == MATRIX_STUDY:
        grids.append(replace(grids[0], seeds=(1,), shots=TWO_DRAWS))
    return replace(study, grids=tuple(grids), answers=False)


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING)
    logging.getLogger("kshot").setLevel(logging.INFO)
    for sentence in rehearse(Path(sys.argv[1])):
        print(sentence)
