"""Compute one cell of every stratum again, in a plain process, and look whether a method's answers stay.

It is fitted three times: as it was, with shuffled test labels, and with the test pictures in another order and asked in
two parts. Answers that change are a mistake: drop-out left on, chance without a seed, shots of other cells, statistics
over the test pictures, labels that reach it. Labels in a file, and mistakes in other cells, are not found
(docs/protocol.md).
"""

import hashlib
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from kshot.bench.cell import asked_head, checked_predictions
from kshot.bench.knobs import made
from kshot.bench.query import Query, digest
from kshot.bench.record import cells_of
from kshot.bench.records import Checked
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.episode import Episode
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import one_line
from kshot.methods import registry
from kshot.types import Array
from kshot.workers import apart

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("kshot")
# Share of answers that may differ: rounding decides ties, and other rows or another machine round otherwise.
TIES = 1e-3
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Leak:
    """What is wrong with a method, as seen in one cell."""

    method: str
    cell: Cell
    what: str

    def __str__(self) -> str:
        return f"{self.method} in {self.cell.in_words()}: {self.what}"


def leak_check(
    study: Study, specs: Sequence[MethodSpec], store: Store, hits: Mapping[tuple[Cell, str], bytes]
) -> tuple[Leak, ...]:
    """Findings about these methods; `hits` are those of their records, by cell and the method's name."""
    findings: list[Leak] = []
    for spec in specs:
        recorded = {cell: bits for (cell, name), bits in hits.items() if name == spec.name}
        # Reference points declare the test labels.
        if "test" not in made(spec).info.sees:
            findings += _findings(study, spec, store, _one_per_stratum(recorded))
    return tuple(findings)


def check_own(asked: Query, records: "pa.Table", store: Store, before: Mapping[str, Checked]) -> dict[str, Checked]:
    """What is known of methods that are not part of kshot, of those with strata that nobody looked at before."""
    made_of = {name: digest(words) for name, words in asked.source.recipes.items()}
    known = {name: before.get(name, Checked(made_of[name], [], [])) for name in made_of}
    looked_at = {(name, *place) for name, one in known.items() for place in one.strata}
    own = {name: spec for name, spec in asked.study.methods().items() if spec.use not in registry.BUILTIN}
    hits: dict[str, dict[tuple[Cell, str], bytes]] = {}
    columns = (records[name].to_pylist() for name in ("method", "status", "hits"))
    for cell, name, status, bits in zip(cells_of(records), *columns, strict=True):
        if status == "ok" and name in own and (name, cell.dataset, cell.backbone) not in looked_at:
            hits.setdefault(name, {})[cell, name] = bits
    checked = {}
    for name, theirs in hits.items():
        strata = sorted({(cell.dataset, cell.backbone) for cell, _ in theirs})
        logger.info(f"leak check of {name}: one cell of {', '.join(map('/'.join, strata))} again")
        leaks = leak_check(asked.study, [own[name]], store, theirs)
        checked[name] = Checked(made_of[name], [*known[name].strata, *strata], [*known[name].leaks, *map(str, leaks)])
    return checked


def _findings(study: Study, spec: MethodSpec, store: Store, hits: Mapping[Cell, bytes]) -> Iterator[Leak]:
    from joblib.externals.loky import ProcessPoolExecutor

    with apart(), ProcessPoolExecutor(1, env=ONE_THREAD) as process:
        for cell, bits in hits.items():
            episode = _episode(study, spec, store, cell)
            truth = episode.reveal(frozenset({"test"})).test.y
            recorded = np.unpackbits(np.frombuffer(bits, np.uint8))[: len(truth)].astype(bool)
            wrong = [f"{name} holds the test labels" for name in _holds(made(spec), truth)]
            try:
                again, shuffled, reordered = process.submit(three_answers, spec, episode).result()
            except Exception as error:
                wrong.append(f"computed again, it fails ({one_line(error)})")
            else:
                wrong += _differences(again == truth, recorded, "computed again", "chance without a seed, or memory")
                wrong += _differences(shuffled, again, "with shuffled test labels", "they reach it")
                other = "with the test pictures in another order and in parts"
                wrong += _differences(reordered, again, other, "it uses statistics over them, or chance")
            yield from (Leak(spec.name, cell, what) for what in wrong)


def _differences(these: Array, those: Array, when: str, why: str) -> Iterator[str]:
    differing = np.count_nonzero(these != those)
    if differing > TIES * len(these):
        yield f"{when}, {differing} of {len(these)} answers differ ({why})"


def _one_per_stratum(hits: Mapping[Cell, bytes]) -> dict[Cell, bytes]:
    """A cell of each stratum, chosen by a hash: the same each time, and not always the first."""
    order = sorted(hits, key=lambda cell: hashlib.sha256(repr(astuple(cell)).encode()).digest())
    chosen = {(cell.dataset, cell.backbone): cell for cell in reversed(order)}
    return {cell: hits[cell] for cell in chosen.values()}


def _episode(study: Study, spec: MethodSpec, store: Store, cell: Cell) -> Episode:
    place, views = (cell.dataset, cell.backbone), [spec.views] if spec.views else []
    given = study.supports_of(cell.dataset)
    stratum = load_stratum(store, *place, study.dtype, views, given, study.pool_cap)
    prior = load_prior(store, *place, cell.tier, study.dtype) if store.tiers(*place) else None
    return stratum.episode(cell.shots, cell.seed, prior, cell.profile).declared(made(spec).info.sees)


def three_answers(spec: MethodSpec, episode: Episode) -> tuple[Int[Array, " n"], ...]:
    """Predictions as in the run, with shuffled test labels, and with the test pictures in another order, put back."""
    order = np.random.default_rng(0).permutation(episode.n_test)
    back = np.argsort(order)
    shuffled, reordered = episode.with_test(labels=order), episode.with_test(pictures=order, labels=order)
    return _predictions(spec, episode), _predictions(spec, shuffled), _predictions(spec, reordered, 2)[back]


def _predictions(spec: MethodSpec, episode: Episode, parts: int = 1) -> Int[Array, " n"]:
    method = made(spec)
    sees = method.info.sees
    episode.fit(method, spec.views)
    head = asked_head(method, episode)
    blocks = np.array_split(episode.queries, 1 if "queries" in sees else parts)
    answers = [checked_predictions(head.predict(rows), len(rows), len(episode.asked)) for rows in blocks]
    return np.concatenate(answers)


def _holds(method: Any, truth: Int[Array, " n"]) -> Iterator[str]:
    """Names of lists and arrays that divide the test pictures as their labels do: in the object, its class and its
    module; of a session those that the class names, because test labels lie there rightly."""
    cls = type(method)
    places = dict(vars(sys.modules[cls.__module__]))
    if cls.__module__ == "__main__":
        functions = [getattr(value, "__code__", None) for value in vars(cls).values()]
        named = {name for code in functions if code for name in code.co_names}
        places = {name: value for name, value in places.items() if name in named}
    for name, value in (places | dict(vars(cls)) | vars(method)).items():
        if isinstance(value, list | tuple | np.ndarray) or hasattr(value, "detach"):
            with suppress(TypeError, ValueError, RuntimeError):
                labels = np.asarray(value).reshape(-1).tolist()
                pairs = set(zip(labels, truth.tolist(), strict=True))
                if len(pairs) == len(set(labels)) == len(set(truth.tolist())) > 1:
                    yield name
