"""The best value of a method's knob by the test labels, as a record of its own."""

from dataclasses import replace

from kshot.bench.query import Query
from kshot.bench.recipes import KNOB_ORACLE, described
from kshot.bench.record import Record
from kshot.bench.records import Records
from kshot.bench.study import Cell, MethodSpec
from kshot.data.episode import Episode
from kshot.errors import UndefinedError
from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.methods.evidence import prepare, without_labels
from kshot.methods.knob import Knob, knob_evidence
from kshot.methods.parameters import known_constants


def knob_oracle(spec: MethodSpec) -> MethodSpec | None:
    """The recipe of a method's oracle; None where it declares no knob."""
    if not isinstance(made(spec), Knob):
        return None
    return replace(spec, name=f"{KNOB_ORACLE}{spec.name}", use=f"{KNOB_ORACLE}{spec.use}", views=None)


def made(spec: MethodSpec) -> Classifier:
    """An unfitted method."""
    if spec.head is not None:
        return spec.head.with_params()
    return registry.create_afresh(spec.use.removeprefix(KNOB_ORACLE), **spec.params)


def measure_oracle(spec: MethodSpec, episode: Episode) -> Record:
    """The accuracy of the best value in one cell."""
    method = made(spec)
    assert isinstance(method, Knob)
    info = replace(method.info, sees=knob_evidence(method.info))
    common = {"sees": tuple(sorted(described(spec).sees)), "n_test": episode.n_test}
    arguments = episode.reveal(info.sees).fit_arguments()
    # The dataset's constants are for methods that declare the test labels themselves.
    arguments["constants"] = known_constants(method, episode.constants(method.info.sees))
    try:
        task = prepare(info, info.min_shots, **arguments)
    except UndefinedError as error:
        return Record(**common, status="undefined", reason=str(error))
    curve = method.knob_curve(without_labels(task), task.test)
    return Record(**common, status="ok", accuracy=float(max(curve)))


def oracle_accuracies(asked: Query, records: Records, spec: MethodSpec) -> dict[Cell, float]:
    """The oracle's accuracy in every cell where it exists."""
    name = f"{KNOB_ORACLE}{spec.name}"
    keys = {named[name].key: cell for cell, named in asked.cells.items() if name in named}
    table = records.table(keys.keys(), ["accuracy"])
    pairs = zip(table["key"].to_pylist(), table["accuracy"].to_pylist(), strict=True)
    return {keys[key]: accuracy for key, accuracy in pairs if accuracy is not None}
