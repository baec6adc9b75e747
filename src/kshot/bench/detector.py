"""`kshot run --verify`: finds methods whose predictions depend on what they did not declare.

A cell is run again three times in new processes: without test labels anywhere in the process, with other labels in
their place, and with the queries in another order and in two parts. The driver scores; a method that keeps to what it
declares gives the same predictions each time. A head of this session cannot be imported: its process inherits this
one's memory, in which the test labels are overwritten first (`kshot.bench.blinding`). docs/protocol.md lists what
remains possible.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.bench.blinding import in_blinded_process
from kshot.bench.cell import asked_head, checked_predictions, checked_probabilities
from kshot.bench.isolation import Enclosure, can_isolate, limit_this_process, run_isolated
from kshot.bench.record import CELL
from kshot.bench.records import load_table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.episode import Episode
from kshot.data.store import BUNDLED, Store, as_store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import KshotError
from kshot.files import read_about, seal_tensors, unseal_tensors
from kshot.methods import registry
from kshot.methods.knob import KnobWithHeads
from kshot.solvers.rows import row_blocks
from kshot.stats.answers import Answers, answers_of
from kshot.types import Array, Labelled

ABSENT = -1
START = "from kshot.bench.detector import answer; answer()"


@dataclass(frozen=True)
class IsolatedFit:
    """One fit in a process of its own and its predictions for `queries`.

    `decoy` labels stand where test labels are in a run. The process does not get the `truth`, the test labels, and
    cannot read the `hidden` folders.
    """

    spec: MethodSpec
    evidence: dict[str, Any]
    queries: Float[Array, "n d"]
    decoy: Int[Array, " n"]
    truth: Int[Array, " n"]
    asked: Int[Array, " A"]
    n_classes: int
    constants: dict[str, Any] = field(default_factory=dict)
    in_parts: bool = False
    hidden: tuple[Path, ...] = ()
    enclosure: Enclosure | None = None

    def predictions(self) -> Int[Array, " n"]:
        return self._checked(self._reply())[0]

    def knob_predictions(self) -> list[Int[Array, " n"]]:
        """Predictions at every value of its knob; empty where it has none that can be fixed."""
        return self._checked(self._reply(knob=True))

    def answers(self) -> Answers:
        """Predictions and probabilities, scored here: the process does not know the true classes."""
        reply = self._reply(probabilities=True)
        given = checked_probabilities(reply.get("probabilities", ()), len(self.queries), len(self.asked))
        return answers_of(given, self.truth, self._checked(reply)[0])

    def _checked(self, reply: dict[str, Array]) -> list[Int[Array, " n"]]:
        rows = reply["predicted"]
        return [checked_predictions(each, len(self.queries), len(self.asked)) for each in rows]

    def _reply(self, knob: bool = False, probabilities: bool = False) -> dict[str, Array]:
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
            "knob": knob,
            "probabilities": probabilities,
            "path": [os.path.abspath(place) for place in sys.path],
        }
        if self.enclosure:
            about |= {
                "path": None,
                "enclosure": [str(self.enclosure.code), self.enclosure.seconds, self.enclosure.memory],
            }
        content = seal_tensors(tensors, about)
        if registry.is_held(self.spec.use):
            reply, error = in_blinded_process(predicted_again, content, self.truth)
            said = error.decode(errors="replace")[:300]
        else:
            reply, said = run_isolated(START, content, self.hidden, self.enclosure)
        try:
            found = unseal_tensors(reply)
            predicted = found["predicted"]
        except Exception:
            # The method can write any bytes instead of an answer.
            raise KshotError(said) from None
        if predicted.ndim != 2 or (len(predicted) != 1 and not knob):
            raise KshotError("it gave something else than its predictions")
        return found


def answer() -> None:
    """Main function of the isolated process: read standard input, fit, write the predictions to standard output."""
    # Whatever the method prints goes to the errors; only our own handle still leads out.
    out = os.dup(1)
    os.dup2(2, 1)
    content = sys.stdin.buffer.read()
    about = read_about(content)
    if about["path"]:
        sys.path[:] = about["path"]
    else:
        code, seconds, memory = about["enclosure"]
        limit_this_process(seconds, memory)
        # Last: nothing in it takes the place of a library.
        sys.path.append(code)
    with os.fdopen(out, "wb") as file:
        file.write(predicted_again(content))


def predicted_again(content: bytes) -> bytes:
    """Fit and predict with the evidence that the driver sent."""
    about, tensors = read_about(content), unseal_tensors(content)
    made = registry.create(about["use"], **about["params"])
    methods = [made]
    if about["knob"]:
        methods = [made.knob_at(value) for value in made.knob_grid()] if isinstance(made, KnobWithHeads) else []
    episode, sees = _episode(tensors, about["n_classes"])
    arguments: dict[str, Any] = episode.reveal(frozenset(sees)).fit_arguments()
    # Views, and queries that a transductive method saw in an order of their own.
    arguments |= {name: tensors[f"{name}/"] for name in ("views", "queries") if f"{name}/" in tensors}
    arguments["constants"] = about["constants"]
    queries = episode.queries
    cut = len(queries) // 3 if about["in_parts"] else 0
    parts = [rows for rows in (queries[:cut], queries[cut:]) if len(rows)]
    predicted = np.zeros((len(methods), len(queries)), np.int64)
    found: dict[str, Array] = {"predicted": predicted}
    for row, method in zip(predicted, methods, strict=True):
        head = asked_head(method.fit(**arguments), episode)
        told = [checked_predictions(head.predict(rows), len(rows), len(episode.asked)) for rows in parts]
        row[:] = np.concatenate(told)
        if about["probabilities"]:
            blocks = [np.asarray(head.predict_proba(queries[here]), np.float32) for here in row_blocks(len(queries))]
            found["probabilities"] = np.concatenate(blocks)
    return seal_tensors(found, {})


def _episode(tensors: dict[str, Array], n_classes: int) -> tuple[Episode, set]:
    """The episode of a run, with decoys for test labels and with declared evidence only."""
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


@dataclass(frozen=True)
class Detection:
    """The result of running a method again: the numbers of cells run and of all its cells, differences in words, and
    whether it was kept from reading features and records; `held` for a head of this session."""

    method: str
    cells: int
    all_cells: int
    differences: tuple[str, ...]
    isolated: bool
    changed: bool = False
    held: bool = False

    def __str__(self) -> str:
        if self.changed:
            return f"{self.method} was changed since its records were computed. Run it again to verify it."
        looked = f"{self.cells} of its {self.all_cells} cell(s), one of each dataset and backbone,"
        blind = "with overwritten test labels" if self.held else "without test labels in its process"
        said = f"{self.method} was run again in {looked} {blind}"
        if self.differences:
            return f"{said}: {'; '.join(self.differences)}. It uses what it did not declare, or chance without a seed."
        files = (
            "" if self.isolated else " It could read features and records: install bubblewrap (bwrap) to prevent that."
        )
        if self.held:
            files = " It shares this session's memory and files; a class in a file of its own can be kept from both."
        return f"{said}, with others in their place and in another order: the same predictions.{files}"


def foreign_methods(study: Study) -> list[MethodSpec]:
    """Methods that are not part of kshot."""
    return [spec for spec in study.methods().values() if spec.use not in registry.BUILTIN]


def detect(study: Study, specs: Sequence[MethodSpec], features: Path | Store, records: Path) -> list[Detection]:
    """Run one finished cell of every stratum again, for each method."""
    rows = load_table(records).to_pylist()
    return [_detect(study, spec, rows, features, records) for spec in specs]


def _detect(study: Study, spec: MethodSpec, rows: list[dict], features: Path | Store, records: Path) -> Detection:
    own = [row for row in rows if row["method"] == spec.name and row["status"] == "ok" and "test" not in row["sees"]]
    made_now = [row for row in own if row["code"] == registry.code_of(spec.use, spec.params)]
    if own and not made_now:
        return Detection(spec.name, 0, len(own), (), True, changed=True)
    chosen = _one_per_stratum(made_now, study.hash)
    found, isolated = [], bool(chosen)
    for row in chosen:
        cell = Cell(*(row[name] for name in CELL))
        differing, here = differences(study, spec, cell, row, features, records)
        isolated &= here
        found += [f"{cell.in_words()}: {what}" for what in differing]
    return Detection(spec.name, len(chosen), len(own), tuple(found), isolated, held=registry.is_held(spec.use))


def differences(
    study: Study, spec: MethodSpec, cell: Cell, row: dict, features: Path | Store, records: Path
) -> tuple[list[str], bool]:
    """How the recorded predictions of one cell differ from those of an isolated process, and whether it was one."""
    fit = isolated_fit(study, spec, cell, row, features, records)
    recorded = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: len(fit.truth)].astype(bool)
    try:
        return [*compared(fit, fit.predictions(), recorded)], can_isolate()
    except KshotError as error:
        return [f"it fails in a process without the test labels ({error})"], True


def compared(fit: IsolatedFit, absent: Int[Array, " n"], recorded: Array, slack: float = 0.0) -> Iterator[str]:
    """Differences between predictions without test labels, the recorded hits, and predictions under other labels and
    in another order; a share `slack` of the pictures may differ from the record, as on other processors."""
    hits = absent == fit.truth
    if np.count_nonzero(hits != recorded) > slack * len(hits):
        yield (
            f"without test labels {100 * hits.mean():.1f} % instead of {100 * recorded.mean():.1f} % "
            f"({np.count_nonzero(hits != recorded)} of {len(hits)} answers differ)"
        )
    swapped = replace(fit, decoy=(fit.truth + 1) % fit.n_classes).predictions()
    if (swapped != absent).any():
        yield f"with other test labels {np.count_nonzero(swapped != absent)} answers differ"
    order = np.random.default_rng(0).permutation(len(fit.truth))
    parts = "queries" not in fit.evidence
    other = replace(fit, queries=fit.queries[order], decoy=fit.decoy[order], in_parts=parts).predictions()
    if (other != absent[order]).any():
        yield f"with the queries in another order {np.count_nonzero(other != absent[order])} answers differ"


def isolated_fit(
    study: Study, spec: MethodSpec, cell: Cell, row: dict, features: Path | Store, records: Path
) -> IsolatedFit:
    """The fit of a recorded cell, ready to be run again."""
    store, sees = as_store(features), frozenset(row["sees"])
    views = spec.views if row["views"] not in ("", "{}") else None
    given, asked = study.supports_of(cell.dataset), [] if views is None else [views]
    stratum = load_stratum(store, cell.dataset, cell.backbone, study.dtype, asked, given, study.pool_cap)
    tiers = store.tiers(cell.dataset, cell.backbone)
    prior = load_prior(store, cell.dataset, cell.backbone, cell.tier, study.dtype) if tiers else None
    episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
    arguments = episode.reveal(sees, views).fit_arguments()
    # The other side names the classes itself, from the shots.
    arguments.pop("classes", None)
    constants = arguments.pop("constants")
    support = {"support": Labelled(arguments.pop("X"), arguments.pop("y"))} if "support" in sees else {}
    return IsolatedFit(
        spec,
        arguments | support,
        episode.queries,
        np.full(episode.n_test, ABSENT),
        episode.reveal(frozenset({"test"})).test.y,
        episode.asked,
        episode.n_classes,
        constants,
        hidden=(store.root, records, BUNDLED),
    )


def _one_per_stratum(rows: list[dict], key: str) -> list[dict]:
    """A cell of each stratum, chosen by a hash: the same each time, and unknown to the method."""

    def number(row: dict) -> bytes:
        return hashlib.sha256(f"{key} {[row[name] for name in CELL]}".encode()).digest()

    strata: dict[tuple[str, str], dict] = {}
    for row in sorted(rows, key=number):
        strata.setdefault((row["dataset"], row["backbone"]), row)
    return list(strata.values())
