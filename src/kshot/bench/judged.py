"""A newcomer's study: its method beside the ones it must be measured against, and its own knob's oracle."""

import re
from dataclasses import dataclass, replace

from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import UndefinedError
from kshot.methods import registry
from kshot.methods.evidence import prepare
from kshot.methods.knob import Knob, knob_evidence
from kshot.methods.parameters import known_constants

COMPANIONS = ("zero_shot", "oracle_lambda", "loo_blend", "clap", "lpp")


@dataclass(frozen=True)
class KnobOracle:
    """The best accuracy of any value of the knob, on the test labels, in every cell where it exists."""

    name: str
    accuracy: dict[Cell, float]


def judged_study(study: Study, newcomer: str) -> Study:
    """The same cells with the newcomer and its companions only; a name and so a records folder of its own."""
    known = [name for name in COMPANIONS if name in registry.names() and name != newcomer]
    specs = tuple(MethodSpec(name, name) for name in (*known, newcomer))
    slug = re.sub(r"[^A-Za-z0-9._+-]+", "-", newcomer).strip("-.")
    grids = tuple(replace(grid, methods=specs) for grid in study.grids)
    return replace(study, name=f"{study.name}-judge-{slug}", grids=grids)


def knob_oracle(study: Study, cells: set[Cell], newcomer: str, store: Store) -> KnobOracle | None:
    """Turn the newcomer's own knob by the test labels; None where it declares no knob."""
    method = registry.create_afresh(newcomer)
    if not isinstance(method, Knob):
        return None
    reads_text = "text" in method.info.sees
    best: dict[Cell, float] = {}
    for dataset, backbone in sorted({(cell.dataset, cell.backbone) for cell in cells}):
        stratum = load_stratum(store, dataset, backbone, study.dtype)
        for cell in (c for c in cells if (c.dataset, c.backbone) == (dataset, backbone)):
            if reads_text and cell.tier not in store.tiers(dataset, backbone):
                continue
            prior = load_prior(store, dataset, backbone, cell.tier, study.dtype) if reads_text else None
            episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
            info = replace(method.info, sees=knob_evidence(method.info))
            arguments = episode.reveal(info.sees).fit_arguments()
            # The dataset's constants are for methods that declare the test labels themselves.
            arguments["constants"] = known_constants(method, episode.constants(method.info.sees))
            try:
                task = prepare(info, info.min_shots, **arguments)
            except UndefinedError:
                continue
            assert task.test is not None
            best[cell] = float(max(method.knob_curve(replace(task, test=None), task.test)))
    return KnobOracle(method.knob_name(), best)
