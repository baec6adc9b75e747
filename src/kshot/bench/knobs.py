"""Knobs on stored features: the chosen value, the best value by the test labels, and the difference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.catalog import not_encoded
from kshot.data.episode import too_thin
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import FeatureError, KshotError, UndefinedError, unknown
from kshot.methods import registry
from kshot.methods.evidence import prepare, without_labels
from kshot.methods.knob import Knob, KnobWorth, knob_evidence, knob_worth
from kshot.methods.parameters import known_constants


@dataclass(frozen=True, slots=True)
class KnobRow:
    """One stratum at one number of shots; accuracies are means over the draws, values are listed per draw."""

    dataset: str
    backbone: str
    shots: int
    worths: tuple[KnobWorth, ...]

    def mean(self, name: str) -> float:
        """Over the draws, in per cent."""
        return 100 * sum(getattr(worth, name) for worth in self.worths) / len(self.worths)

    def values(self, name: str) -> str:
        """The value chosen in each draw; with a star where its evidence is the same for all values."""
        return ", ".join(_short(getattr(worth, name)) + "*" * (name in worth.undecided) for worth in self.worths)


@dataclass(frozen=True)
class KnobOracle:
    """The best accuracy of any value of the knob, on the test labels, in every cell where it exists."""

    name: str
    accuracy: dict[Cell, float]


def knob_oracle(study: Study, cells: set[Cell], spec: MethodSpec, store: Store) -> KnobOracle | None:
    """The best value of a method's own knob by the test labels, cell by cell; None where it declares no knob."""
    method = registry.create_afresh(spec.use, **spec.params)
    if not isinstance(method, Knob):
        return None
    reads_text = "text" in method.info.sees
    best: dict[Cell, float] = {}
    for dataset, backbone in sorted({(cell.dataset, cell.backbone) for cell in cells}):
        given = study.supports_of(dataset)
        stratum = load_stratum(store, dataset, backbone, study.dtype, supports=given, pool_cap=study.pool_cap)
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
            best[cell] = float(max(method.knob_curve(without_labels(task), task.test)))
    return KnobOracle(method.knob_name(), best)


def find_knob(name: str) -> str:
    """The method of that name, or the first whose name starts with it, that has a knob."""
    knobs = [known for known in registry.names() if isinstance(registry.create(known), Knob)]
    if ":" in name or name in registry.names():
        if isinstance(registry.create(name), Knob):
            return name
        raise KshotError(
            f"'{name}' has no knob; those with one: {', '.join(knobs)}. "
            "A method of your own needs knob_name, knob_grid and knob_curve (kshot.methods.knob)."
        )
    matching = [known for known in knobs if known.startswith(name)]
    if not matching:
        raise KshotError(unknown("knob", name, knobs, "List all methods with `kshot ls methods`."))
    return matching[0]


def knob_strata(
    store: Store, name: str, dataset: str | None, tier: str
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Stored strata (of one dataset) that the method can work on, and those that lack the tier it needs."""
    strata = sorted({(m.dataset, m.backbone) for m in store.readable()})
    chosen = [stratum for stratum in strata if dataset in (None, stratum[0])]
    if not chosen:
        hint = f"See `kshot ls features`; looked in {store.root}. `kshot features simulate` writes a generated world."
        named = not_encoded([dataset or ""], [], store.root)
        raise FeatureError(named or unknown("dataset", dataset or "any", {s[0] for s in strata}, hint))
    if "text" not in registry.create(name).info.sees:
        return chosen, []
    usable = [stratum for stratum in chosen if tier in store.tiers(*stratum)]
    if not usable:
        known = {found for stratum in chosen for found in store.tiers(*stratum)}
        raise FeatureError(unknown("tier", tier, known, "Give one of them with --tier."))
    return usable, [stratum for stratum in chosen if stratum not in usable]


def knob_rows(
    store: Store, name: str, strata: Sequence[tuple[str, str]], tier: str, shots: Sequence[int], seeds: int
) -> Iterator[KnobRow]:
    """Every stratum at every number of shots its pool can give."""
    for where in strata:
        method = registry.create(name)
        needs_text = "text" in method.info.sees
        stratum = load_stratum(store, *where)
        prior = load_prior(store, *where, tier) if needs_text else None
        assert isinstance(method, Knob)
        for k in shots:
            if too_thin(stratum.pool.y, stratum.n_classes, k):
                continue
            worths = []
            for seed in range(seeds):
                episode = stratum.episode(k, seed, prior)
                arguments = episode.reveal(knob_evidence(method.info)).fit_arguments()
                # The dataset's constants are for methods that declare the test labels themselves.
                arguments["constants"] = episode.constants(method.info.sees)
                worths.append(knob_worth(method, **arguments))
            yield KnobRow(*where, k, tuple(worths))


def _short(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(_short(part) for part in value) + ")"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
