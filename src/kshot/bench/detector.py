"""Does a method's answer depend on what it did not declare? Its cells are run again without it, and compared.

Three times in new processes: without test labels anywhere in the process, with other labels in their place, and with
the queries in another order and in two parts. The driver scores; a method that keeps to what it declares gives the
same predictions each time. What remains possible is told in docs/protocol.md.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Int

from kshot.bench.isolated import ABSENT, Alone
from kshot.bench.record import CELL
from kshot.bench.records import load_table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.store import BUNDLED, Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import KshotError
from kshot.methods import registry
from kshot.methods.source_code import code_of
from kshot.types import Array, Labelled


@dataclass(frozen=True)
class Detection:
    """What running again showed: cells looked at and all that it could have been, differences in words, and whether
    files were out of reach."""

    method: str
    cells: int
    all_cells: int
    differences: tuple[str, ...]
    shut_out: bool
    changed: bool = False

    def __str__(self) -> str:
        if self.changed:
            return f"{self.method} was changed since its records were computed. Run it again to verify it."
        looked = f"{self.cells} of its {self.all_cells} cell(s), one of each dataset and backbone,"
        said = f"{self.method} was run again in {looked} without test labels in its process"
        if self.differences:
            return f"{said}: {'; '.join(self.differences)}. It uses what it did not declare, or chance without a seed."
        files = "" if self.shut_out else " Its access to files could not be shut out on this system."
        return f"{said}, with others in their place and in another order: the same predictions.{files}"


def foreign_methods(study: Study) -> list[MethodSpec]:
    """Methods that are not part of kshot."""
    return [spec for spec in study.methods().values() if spec.use not in registry.BUILTIN]


def detect(study: Study, specs: Sequence[MethodSpec], features: Path, records: Path) -> list[Detection]:
    """Run one finished cell of every stratum again, for each method."""
    rows = load_table(records).to_pylist()
    return [_detect(study, spec, rows, features, records) for spec in specs]


def _detect(study: Study, spec: MethodSpec, rows: list[dict], features: Path, records: Path) -> Detection:
    own = [row for row in rows if row["method"] == spec.name and row["status"] == "ok" and "test" not in row["sees"]]
    made_now = [row for row in own if row["code"] == code_of(spec.use, spec.params)]
    if own and not made_now:
        return Detection(spec.name, 0, len(own), (), True, changed=True)
    chosen = _one_per_stratum(made_now, study.hash)
    found, out = [], bool(chosen)
    for row in chosen:
        cell = Cell(*(row[name] for name in CELL))
        where = f"{cell.dataset}/{cell.backbone}/{cell.tier}, {cell.shots} shots, seed {cell.seed}"
        differing, shut = differences(study, spec, cell, row, features, records)
        out &= shut
        found += [f"{where}: {what}" for what in differing]
    return Detection(spec.name, len(chosen), len(own), tuple(found), out)


def differences(
    study: Study, spec: MethodSpec, cell: Cell, row: dict, features: Path, records: Path
) -> tuple[list[str], bool]:
    """In what way the recorded answer of one cell is not the one that the method gives alone."""
    alone, truth = _alone(study, spec, cell, row, features, records)
    recorded = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: len(truth)].astype(bool)
    try:
        absent, shut_out = alone.predictions()
        return [*_compared(alone, absent, absent == truth, recorded, truth)], shut_out
    except KshotError as error:
        return [f"it fails in a process without the test labels ({error})"], True


def _compared(
    alone: Alone, absent: Int[Array, " n"], hits: Array, recorded: Array, truth: Int[Array, " n"]
) -> Iterator[str]:
    if (hits != recorded).any():
        yield (
            f"without test labels {100 * hits.mean():.1f} % instead of {100 * recorded.mean():.1f} % "
            f"({np.count_nonzero(hits != recorded)} of {len(hits)} answers differ)"
        )
    swapped, _ = replace(alone, decoy=(truth + 1) % alone.n_classes).predictions()
    if (swapped != absent).any():
        yield f"with other test labels {np.count_nonzero(swapped != absent)} answers differ"
    order = np.random.default_rng(0).permutation(len(truth))
    parts = "queries" not in alone.evidence
    other, _ = replace(alone, queries=alone.queries[order], decoy=alone.decoy[order], in_parts=parts).predictions()
    if (other != absent[order]).any():
        yield f"with the queries in another order {np.count_nonzero(other != absent[order])} answers differ"


def _alone(
    study: Study, spec: MethodSpec, cell: Cell, row: dict, features: Path, records: Path
) -> tuple[Alone, Int[Array, " n"]]:
    store, sees = Store(features), frozenset(row["sees"])
    views = spec.views if row["views"] not in ("", "{}") else None
    stratum = load_stratum(store, cell.dataset, cell.backbone, study.dtype, [] if views is None else [views])
    tiers = store.tiers(cell.dataset, cell.backbone)
    prior = load_prior(store, cell.dataset, cell.backbone, cell.tier, study.dtype) if tiers else None
    episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
    arguments = episode.reveal(sees, views).fit_arguments()
    # The other side names the classes itself, from the shots.
    arguments.pop("classes", None)
    constants = arguments.pop("constants")
    support = {"support": Labelled(arguments.pop("X"), arguments.pop("y"))} if "support" in sees else {}
    alone = Alone(
        spec,
        arguments | support,
        episode.queries,
        np.full(episode.n_test, ABSENT),
        episode.asked,
        episode.n_classes,
        constants,
        hidden=(features, records, BUNDLED),
    )
    return alone, episode.reveal(frozenset({"test"})).test.y


def _one_per_stratum(rows: list[dict], key: str) -> list[dict]:
    """A cell of each stratum, chosen by a hash: the same each time, and no method can tell which."""

    def number(row: dict) -> bytes:
        return hashlib.sha256(f"{key} {[row[name] for name in CELL]}".encode()).digest()

    strata: dict[tuple[str, str], dict] = {}
    for row in sorted(rows, key=number):
        strata.setdefault((row["dataset"], row["backbone"]), row)
    return list(strata.values())
