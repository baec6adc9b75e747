"""The whole paper on generated features, from nothing to report and comparison: `python tools/rehearse.py FOLDER`.

Every dataset, encoder, tier and shot count of the paper, two draws each. All of it is labelled simulated: it shows that
the road is whole, and says nothing about the paper.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from kshot.bench.study import Study, load_study
from kshot.datasets.rehearsal import write_rehearsal
from kshot.features.store import Store
from kshot.files import write_text
from kshot.report.published.claims import paper_claims
from kshot.report.published.compare import as_csv, verdict_sentences
from kshot.reproduction import compare_folders
from kshot.results import load_records
from kshot.runs import measure, run

ARMS = ("paper", "tiers", "siglip2", "textfree", "precision")
COOP_BACKBONES = ("RN50", "ViT-B-16")
SEEDS = (0, 1)
STARTED = time.perf_counter()


def rehearse(folder: Path) -> list[str]:
    """Do everything in this folder and give back what the comparison says."""
    features, coop, records = folder / "features", folder / "features-coop", folder / "records"
    write_rehearsal(Store(features))
    write_rehearsal(Store(coop), COOP_BACKBONES, protocol="coop")
    _tell("features")
    for arm in ARMS:
        run(_short(load_study(arm)), records=records / arm, features=features)
        _tell(arm)
    short = _short(load_study("coop"))
    grids = tuple(replace(grid, backbones=COOP_BACKBONES) for grid in short.grids)
    run(replace(short, grids=grids), records=records / "coop", features=coop)
    _tell("coop")
    measure(records / "paper", features=features)
    _tell("probes")
    load_records(records / "paper", features=features).report()
    _tell("report")
    lines, simulated = compare_folders(records, paper_claims())
    write_text(records / "published.csv", as_csv(lines))
    _tell("comparison")
    return verdict_sentences(lines, simulated)


def _short(study: Study) -> Study:
    return replace(study, grids=tuple(replace(grid, seeds=SEEDS) for grid in study.grids))


def _tell(step: str) -> None:
    print(f"{time.perf_counter() - STARTED:4.0f} s: {step}", flush=True)


if __name__ == "__main__":
    for sentence in rehearse(Path(sys.argv[1])):
        print(sentence)
