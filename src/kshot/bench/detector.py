"""`kshot run --verify`: finds methods whose predictions depend on what they did not declare.

A cell is run again three times in new processes: without test labels anywhere in the process, with other labels in
their place, and with the queries in another order and in two parts. The driver scores; a method that keeps to what it
declares gives the same predictions each time. docs/protocol.md lists what remains possible.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.bench.cell import asked_head, checked_predictions
from kshot.bench.engines import ONE_THREAD
from kshot.bench.record import CELL
from kshot.bench.records import load_table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.episode import Episode
from kshot.data.store import BUNDLED, Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import KshotError
from kshot.files import read_about, seal_tensors, unseal_tensors
from kshot.methods import registry
from kshot.methods.registry import code_of
from kshot.types import Array, Labelled

ABSENT = -1
START = "from kshot.bench.detector import answer; answer()"
# Nothing but reading, no network, and other processes out of sight; where bubblewrap is installed.
ISOLATION = ("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")


@dataclass(frozen=True)
class IsolatedFit:
    """One fit in a process of its own and its predictions for `queries`; `decoy` labels stand where test labels are in
    a run, and the process cannot read the `hidden` folders."""

    spec: MethodSpec
    evidence: dict[str, Any]
    queries: Float[Array, "n d"]
    decoy: Int[Array, " n"]
    asked: Int[Array, " A"]
    n_classes: int
    constants: dict[str, Any] = field(default_factory=dict)
    in_parts: bool = False
    hidden: tuple[Path, ...] = ()

    def predictions(self) -> Int[Array, " n"]:
        tensors: dict[str, Array] = {"queries": self.queries, "decoy": self.decoy, "asked": self.asked}
        for name, value in self.evidence.items():
            parts = {"X": value.X, "y": value.y} if isinstance(value, Labelled) else {"": value}
            tensors |= {f"{name}/{part}": array for part, array in parts.items() if array is not None}
        about = {
            "use": self.spec.use,
            "params": self.spec.params,
            "constants": self.constants,
            "n_classes": self.n_classes,
            "in_parts": self.in_parts,
            "path": [os.path.abspath(place) for place in sys.path],
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KSHOT_")}
        environment |= ONE_THREAD
        command = [sys.executable, "-P", "-c", START]
        if can_isolate():
            hidden = [str(folder.resolve()) for folder in self.hidden if folder.is_dir()]
            environment["TMPDIR"] = "/dev/shm"
            command = [*ISOLATION, *(part for folder in hidden for part in ("--tmpfs", folder)), *command]
        done = subprocess.run(
            command, input=seal_tensors(tensors, about), capture_output=True, env=environment, check=False
        )
        try:
            return unseal_tensors(done.stdout)["predicted"]
        except ValueError:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it gave no answer"]
            raise KshotError(said[-1][:300]) from None


@cache
def can_isolate() -> bool:
    """Whether bubblewrap is installed and may make namespaces here."""
    try:
        return subprocess.run([*ISOLATION, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def answer() -> None:
    """What the isolated process runs: everything comes in by standard input, one array goes out."""
    # Whatever the method prints goes to the errors; only our own handle still leads out.
    out = os.dup(1)
    os.dup2(2, 1)
    content = sys.stdin.buffer.read()
    about, tensors = read_about(content), unseal_tensors(content)
    sys.path[:] = about["path"]
    method = registry.create(about["use"], **about["params"])
    episode, sees = _episode(tensors, about["n_classes"])
    arguments: dict[str, Any] = episode.reveal(frozenset(sees)).fit_arguments() | _as_they_were(tensors)
    arguments["constants"] = about["constants"]
    head = asked_head(method.fit(**arguments), episode)
    queries = episode.queries
    cut = len(queries) // 3 if about["in_parts"] else 0
    parts = [rows for rows in (queries[:cut], queries[cut:]) if len(rows)]
    predicted = [checked_predictions(head.predict(rows), len(rows), len(episode.asked)) for rows in parts]
    reply = seal_tensors({"predicted": np.concatenate(predicted)}, {})
    with os.fdopen(out, "wb") as file:
        file.write(reply)


def _episode(tensors: dict[str, Array], n_classes: int) -> tuple[Episode, set]:
    """As in a run, but with decoys for test labels, and nothing that was not declared."""
    sees = {name.partition("/")[0] for name in tensors if "/" in name} - {"views"}
    nothing = Labelled(tensors["queries"][:0], np.zeros(0, np.int64))
    rows = {
        name: Labelled(tensors[f"{name}/X"], tensors[f"{name}/y"]) if name in sees else nothing
        for name in ("support", "pool", "validation", "few_shot_validation")
    }
    episode = Episode(
        text=tensors.get("text/"),
        support=rows["support"],
        residue=rows["pool"],
        test=Labelled(tensors["queries"], tensors["decoy"]),
        n_classes=n_classes,
        few_shot_validation=rows["few_shot_validation"],
        query_order=np.arange(len(tensors["queries"])),
        validation=rows["validation"],
        asked=tensors["asked"],
    )
    return episode, sees


def _as_they_were(tensors: dict[str, Array]) -> dict[str, Array]:
    """Views, and queries that a transductive method saw in an order of their own."""
    return {name: tensors[f"{name}/"] for name in ("views", "queries") if f"{name}/" in tensors}


@dataclass(frozen=True)
class Detection:
    """What running again showed: cells run and cells there are, differences in words, and whether the method was kept
    from reading features and records."""

    method: str
    cells: int
    all_cells: int
    differences: tuple[str, ...]
    isolated: bool
    changed: bool = False

    def __str__(self) -> str:
        if self.changed:
            return f"{self.method} was changed since its records were computed. Run it again to verify it."
        looked = f"{self.cells} of its {self.all_cells} cell(s), one of each dataset and backbone,"
        said = f"{self.method} was run again in {looked} without test labels in its process"
        if self.differences:
            return f"{said}: {'; '.join(self.differences)}. It uses what it did not declare, or chance without a seed."
        files = (
            "" if self.isolated else " It could read features and records: install bubblewrap (bwrap) to prevent that."
        )
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
    """How the recorded predictions of one cell differ from those of an isolated process, and whether it was one."""
    fit, truth = _isolated_fit(study, spec, cell, row, features, records)
    recorded = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: len(truth)].astype(bool)
    try:
        absent = fit.predictions()
        return [*_compared(fit, absent, absent == truth, recorded, truth)], can_isolate()
    except KshotError as error:
        return [f"it fails in a process without the test labels ({error})"], True


def _compared(
    fit: IsolatedFit, absent: Int[Array, " n"], hits: Array, recorded: Array, truth: Int[Array, " n"]
) -> Iterator[str]:
    if (hits != recorded).any():
        yield (
            f"without test labels {100 * hits.mean():.1f} % instead of {100 * recorded.mean():.1f} % "
            f"({np.count_nonzero(hits != recorded)} of {len(hits)} answers differ)"
        )
    swapped = replace(fit, decoy=(truth + 1) % fit.n_classes).predictions()
    if (swapped != absent).any():
        yield f"with other test labels {np.count_nonzero(swapped != absent)} answers differ"
    order = np.random.default_rng(0).permutation(len(truth))
    parts = "queries" not in fit.evidence
    other = replace(fit, queries=fit.queries[order], decoy=fit.decoy[order], in_parts=parts).predictions()
    if (other != absent[order]).any():
        yield f"with the queries in another order {np.count_nonzero(other != absent[order])} answers differ"


def _isolated_fit(
    study: Study, spec: MethodSpec, cell: Cell, row: dict, features: Path, records: Path
) -> tuple[IsolatedFit, Int[Array, " n"]]:
    store, sees = Store(features), frozenset(row["sees"])
    views = spec.views if row["views"] not in ("", "{}") else None
    asked = [] if views is None else [views]
    stratum = load_stratum(store, cell.dataset, cell.backbone, study.dtype, asked, study.pool_cap)
    tiers = store.tiers(cell.dataset, cell.backbone)
    prior = load_prior(store, cell.dataset, cell.backbone, cell.tier, study.dtype) if tiers else None
    episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
    arguments = episode.reveal(sees, views).fit_arguments()
    # The other side names the classes itself, from the shots.
    arguments.pop("classes", None)
    constants = arguments.pop("constants")
    support = {"support": Labelled(arguments.pop("X"), arguments.pop("y"))} if "support" in sees else {}
    fit = IsolatedFit(
        spec,
        arguments | support,
        episode.queries,
        np.full(episode.n_test, ABSENT),
        episode.asked,
        episode.n_classes,
        constants,
        hidden=(features, records, BUNDLED),
    )
    return fit, episode.reveal(frozenset({"test"})).test.y


def _one_per_stratum(rows: list[dict], key: str) -> list[dict]:
    """A cell of each stratum, chosen by a hash: the same each time, and unknown to the method."""

    def number(row: dict) -> bytes:
        return hashlib.sha256(f"{key} {[row[name] for name in CELL]}".encode()).digest()

    strata: dict[tuple[str, str], dict] = {}
    for row in sorted(rows, key=number):
        strata.setdefault((row["dataset"], row["backbone"]), row)
    return list(strata.values())
