"""The whole paper on generated features, from nothing to report and comparison: `python tools/rehearse.py FOLDER`.

Every dataset, encoder, tier and shot count of the paper, two draws each. All of it is labelled simulated: it shows that
the road is whole, and says nothing about the paper.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from kshot.bench.study import Study, load_study
from kshot.datasets.rehearsal import COOP_BACKBONES, VIEWED_BACKBONE, write_rehearsal
from kshot.features.store import Store
from kshot.files import write_text
from kshot.report.published.claims import paper_claims
from kshot.report.published.compare import as_csv, verdict_sentences
from kshot.reproduction import compare_folders
from kshot.results import load_records
from kshot.runs import measure, run

# Each arm with the encoders it is rehearsed on; all of its own where none are named.
ARMS = {
    "paper": (),
    "tiers": (),
    "siglip2": (),
    "textfree": (),
    "precision": (),
    "coop": COOP_BACKBONES,
    "augmentation": (VIEWED_BACKBONE,),
}
SEEDS = (0, 1)
STARTED = time.perf_counter()


def rehearse(folder: Path) -> list[str]:
    """Do everything in this folder and give back what the comparison says."""
    features, records = folder / "features", folder / "records"
    write_rehearsal(Store(features))
    _tell("features")
    for arm, backbones in ARMS.items():
        run(_short(load_study(arm), backbones), records=records / arm, features=features)
        _tell(arm)
    measure(records / "paper", features=features)
    _tell("probes")
    load_records(records / "paper", features=features).report()
    _tell("report")
    lines, simulated = compare_folders(records, paper_claims())
    write_text(records / "published.csv", as_csv(lines))
    _tell("comparison")
    return verdict_sentences(lines, simulated)


def _short(study: Study, backbones: tuple[str, ...]) -> Study:
    grids = (replace(grid, seeds=SEEDS, backbones=backbones or grid.backbones) for grid in study.grids)
    return replace(study, grids=tuple(grids))


def _tell(step: str) -> None:
    print(f"{time.perf_counter() - STARTED:4.0f} s: {step}", flush=True)


if __name__ == "__main__":
    for sentence in rehearse(Path(sys.argv[1])):
        print(sentence)
