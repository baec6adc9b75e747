"""Reproduce the paper: features, gate, matrix, probes, arms, reports, comparison; each stage keeps what is there."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kshot.bench.records import Records
from kshot.bench.status import run_status
from kshot.bench.study import Cell, Study, load_study
from kshot.data.catalog import BAND_BACKBONE
from kshot.data.gate import failed_gates
from kshot.data.store import Store
from kshot.errors import KshotError, StudyError
from kshot.files import write_text
from kshot.paper.claims import paper_claims, paper_rules
from kshot.paper.features import Sources, encode_wanted, match_sentences, wanted_features
from kshot.paper.folders import MATRIX_STUDY, compare_folders
from kshot.paper.summary import as_csv, verdict_sentences
from kshot.results import load_records
from kshot.runs import measure, run

logger = logging.getLogger("kshot")
PRECISION, AUGMENTATION = "precision", "augmentation"
STAGES = ("sentences", "encode", "gate", "matrix", "probes", "arms", "reports", "comparison")
CAUSES = "Usual causes: the activation (QuickGELU), the preprocessing, the order of the classes."
SMALL = {"datasets": ("DTD", "EuroSAT", "Pets"), "backbones": ("ViT-B-16",), "studies": (MATRIX_STUDY,)}
# Of the comparison, in the terminal.
MOST_LINES = 10


def arms() -> list[str]:
    """The studies of the paper, the matrix first."""
    return list(paper_rules().paper["studies"])


@dataclass(frozen=True)
class Selection:
    """Which part of the paper; empty stands for all."""

    studies: Sequence[Study | str] = ()
    datasets: Collection[str] = ()
    backbones: Collection[str] = ()
    tiers: Collection[str] = ()

    def loaded(self) -> list[Study]:
        return [load_study(study) for study in self.studies or arms()]

    def keep(self, cell: Cell) -> bool:
        """Whether the cell is chosen; a dataset stands for its CoOp splits too."""
        named = ((self.datasets, cell.dataset), (self.backbones, cell.backbone), (self.tiers, cell.tier))
        return all(not names or name in names or name.removesuffix("-coop") in names for names, name in named)


@dataclass
class Reproduction:
    """One run through the stages; `failed` and `aside` say what could not be had, and why."""

    features: Path
    records: Path
    choice: Selection
    sources: Sources = field(default_factory=Sources)
    workers: int = 1
    backend: str = "loky"
    ignore_gate: bool = False
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)

    def run(self, last: str = STAGES[-1]) -> list[str]:
        """All stages up to `last`; returns what was computed, what was not, and the verdict in sentences."""
        said: list[str] = []
        steps = (
            *(self.sentences, self.encode, self.gate, self.matrix),
            *(self.probes, self.arms, self.reports, self.comparison),
        )
        for stage, step in list(zip(STAGES, steps, strict=True))[: STAGES.index(last) + 1]:
            logger.info(f"stage {stage}")
            said = step() or said
        return [*self.summary(), *said]

    def keep(self, cell: Cell) -> bool:
        return self.choice.keep(cell) and cell.dataset not in self.aside

    def sentences(self) -> None:
        match_sentences(self._lacking(), self.sources)

    def encode(self) -> None:
        self.failed = encode_wanted(self._lacking(), Store(self.features), self.sources)

    def gate(self) -> None:
        """Set aside the datasets outside their band of published zero-shot accuracies."""
        names = wanted_features(self.choice.loaded(), self.choice.keep)
        gates = failed_gates(Store(self.features), [(name, BAND_BACKBONE) for name in names])
        for (name, _), said in gates.items():
            if self.ignore_gate:
                logger.warning(f"{said}; --ignore-gate: computed all the same, and recorded. {CAUSES}")
            else:
                logger.warning(f"{said}; set aside. {CAUSES} --ignore-gate computes it all the same.")
                self.aside[name] = f"outside its band: {said}"

    def matrix(self) -> None:
        self._compute(lambda name: name == MATRIX_STUDY)

    def probes(self) -> None:
        for study in self.choice.loaded():
            if study.name == MATRIX_STUDY and Records(self.records).has(MATRIX_STUDY):
                measure(study, keep=self.keep, **self._where())

    def arms(self) -> None:
        self._compute(lambda name: name != MATRIX_STUDY)

    def reports(self) -> None:
        cache = Records(self.records)
        begun = [study.name for study in self.choice.loaded() if cache.has(study.name)]
        write_reports(self.features, self.records, begun)

    def comparison(self) -> list[str]:
        if not Records(self.records).keys():
            return ["nothing to compare: no cell was computed."]
        sentences = compare_arms(self.records)
        return [*sentences[: MOST_LINES - 1], sentences[-1]] if len(sentences) > MOST_LINES else sentences

    def summary(self) -> list[str]:
        """Pairs of each arm that are computed, and why others are not."""
        lines = []
        for study in self.choice.loaded():
            cache, total = Records(self.records), len({(cell.dataset, cell.backbone) for cell in study.cells()})
            done = run_status(cache, cache.saved(study.name)).pairs[0] if cache.has(study.name) else 0
            lines.append(f"{study.name}: {done} of {total} pairs computed")
        reasons: dict[str, list[str]] = {}
        for (dataset, backbone), why in self.failed.items():
            reasons.setdefault(why, []).append(f"{dataset}/{backbone}")
        lines += [f"not computed: {_few(where)}: {why}" for why, where in reasons.items()]
        return lines + [f"not computed: {dataset}, {why}" for dataset, why in self.aside.items()]

    def _lacking(self) -> dict:
        wanted, store = wanted_features(self.choice.loaded(), self.choice.keep), Store(self.features)
        return {name: needs for name, needs in wanted.items() if needs.lacking(store, name)}

    def _where(self) -> dict[str, Any]:
        names = ("features", "records", "workers", "backend")
        return {name: getattr(self, name) for name in names}

    def _compute(self, wanted: Callable[[str], bool]) -> None:
        for study in (study for study in self.choice.loaded() if wanted(study.name)):
            try:
                run(study, keep=self.keep, **self._where())
            except StudyError as error:
                logger.warning(f"{study.name}: {error}")


def write_reports(features: Path, records: Path, names: Sequence[str]) -> None:
    """Write the report of each of these arms; two of them are compared with the matrix."""
    matrix = load_records(records, MATRIX_STUDY) if Records(records).has(MATRIX_STUDY) else None
    for name in names:
        try:
            other = matrix if name in (AUGMENTATION, PRECISION) else None
            logger.info(f"report: {load_records(records, name, features=features).beside(other).report().page}")
        except KshotError as error:
            logger.warning(f"no report of {name}: {error}")


def compare_arms(records: Path) -> list[str]:
    """Write published.csv, the paper's numbers beside ours; returns the verdict in sentences."""
    judged = compare_folders(records, paper_claims())
    write_text(records / "published.csv", as_csv(judged))
    return [*verdict_sentences(judged), f"wrote {records / 'published.csv'}"]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
