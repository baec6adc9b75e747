"""A method in a process of its own, which is given what the method declares and never held the test labels."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.bench.engines import ONE_THREAD
from kshot.bench.study import MethodSpec
from kshot.data.episode import Episode
from kshot.errors import KshotError
from kshot.files import read_about, seal_tensors, unseal_tensors
from kshot.methods import registry
from kshot.types import Array, Labelled

ABSENT = -1
START = "from kshot.bench.isolated import answer; answer()"


@dataclass(frozen=True)
class Alone:
    """One fit and its predictions for `queries`; `decoy` labels stand where test labels are in a run."""

    spec: MethodSpec
    evidence: dict[str, Any]
    queries: Float[Array, "n d"]
    decoy: Int[Array, " n"]
    asked: Int[Array, " A"]
    n_classes: int
    constants: dict[str, Any] = field(default_factory=dict)
    in_parts: bool = False
    hidden: tuple[Path, ...] = ()

    def predictions(self) -> tuple[Int[Array, " n"], bool]:
        """What the process answers, and whether it was kept from reading the hidden folders."""
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
            "hidden": [str(folder.absolute()) for folder in self.hidden],
            "path": [os.path.abspath(place) for place in sys.path],
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KSHOT_")}
        environment |= ONE_THREAD
        done = subprocess.run(
            [sys.executable, "-P", "-c", START],
            input=seal_tensors(tensors, about),
            capture_output=True,
            env=environment,
            check=False,
        )
        try:
            answered = unseal_tensors(done.stdout)
        except ValueError:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it gave no answer"]
            raise KshotError(said[-1][:300]) from None
        return answered["predicted"], bool(read_about(done.stdout)["shut_out"])


def answer() -> None:
    """The other side: everything comes in by standard input, one array goes out."""
    # Whatever the method prints goes to the errors; only our own handle still leads out.
    out = os.dup(1)
    os.dup2(2, 1)
    content = sys.stdin.buffer.read()
    about, tensors = read_about(content), unseal_tensors(content)
    sys.path[:] = about["path"]
    from kshot.bench.cell import asked_head, checked_predictions
    from kshot.bench.sandbox import shut_out

    restricted = shut_out([Path(folder) for folder in about["hidden"]])
    method = registry.create(about["use"], **about["params"])
    episode, sees = _episode(tensors, about["n_classes"])
    arguments: dict[str, Any] = episode.reveal(frozenset(sees)).fit_arguments() | _as_they_were(tensors)
    arguments["constants"] = about["constants"]
    head = asked_head(method.fit(**arguments), episode)
    queries = episode.queries
    cut = len(queries) // 3 if about["in_parts"] else 0
    parts = [rows for rows in (queries[:cut], queries[cut:]) if len(rows)]
    predicted = [checked_predictions(head.predict(rows), len(rows), len(episode.asked)) for rows in parts]
    reply = seal_tensors({"predicted": np.concatenate(predicted)}, {"shut_out": restricted})
    with os.fdopen(out, "wb") as file:
        file.write(reply)


def _episode(tensors: dict[str, Array], n_classes: int) -> tuple[Episode, set]:
    """As in a run, but with decoys for test labels and nothing for what was not declared."""
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
