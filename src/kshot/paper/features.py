"""Fetch and encode what the paper's studies lack, dataset by dataset; what cannot be had stops nothing else."""

import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kshot.bench.study import Cell, Study
from kshot.data.catalog import COOP_SUFFIX, backbones
from kshot.data.store import Store, view_part
from kshot.encode.encoders import load_encoder
from kshot.encode.encoding import check_reference, encode_pictures
from kshot.encode.hub import DATASETS
from kshot.encode.prompts import encode_tiers, tier_prompts
from kshot.encode.protocol import Encoder
from kshot.encode.sources import Origin, find_origins
from kshot.encode.sources.coop import catalog_name
from kshot.encode.sources.source import Source
from kshot.encode.targets import Draws, Encoding
from kshot.errors import InputError, KshotError
from kshot.types import Views

logger = logging.getLogger("kshot")
SHARDS = ".shards"


@dataclass(frozen=True)
class Sources:
    """Where pictures, weights and sentences come from, and how they are encoded."""

    where: str = DATASETS
    coop: Path | None = None
    weights: Mapping[str, Path] = field(default_factory=dict)
    sentences: Mapping[str, Path] = field(default_factory=dict)
    keep_shards: Path | None = None
    device: str = "auto"
    batch: int = 32
    threads: int = 2

    def origin(self, dataset: str) -> Origin:
        """The hub's shards, or CoOp's split file below the folder of `--coop`."""
        if not dataset.endswith(COOP_SUFFIX):
            return find_origins(self.where, [dataset])[0]
        name = dataset.removesuffix(COOP_SUFFIX)
        files = sorted(self.coop.rglob("split_zhou_*.json")) if self.coop else []
        for file in files:
            if catalog_name(file) == name:
                return find_origins(str(file), [name])[0]
        given = f"{self.coop} holds no split_zhou_*.json of it" if self.coop else "no CoOp split is given"
        raise InputError(f"{given}. Give a folder of CoOp's split files and their pictures: --coop FOLDER.")


@dataclass(frozen=True)
class Needs:
    """Of one dataset: prompt tiers by backbone, and who is given views of which draws."""

    tiers: dict[str, set[str]] = field(default_factory=dict)
    views: dict[Views, Draws] = field(default_factory=dict)
    viewed: set[str] = field(default_factory=set)
    pool_cap: int | None = None

    def lacking(self, store: Store, dataset: str) -> dict[str, set[str]]:
        """Backbones that lack pictures, views or tiers, with the tiers they lack."""
        found = {}
        for backbone, wanted in self.tiers.items():
            text = backbones()[backbone].text
            tiers = {tier for tier in wanted if text and not store.has(dataset, backbone, f"text-{tier}")}
            if tiers or not self._has_pictures(store, dataset, backbone):
                found[backbone] = tiers
        return found

    def _has_pictures(self, store: Store, dataset: str, backbone: str) -> bool:
        part = "all" if store.has(dataset, backbone, "all") else "pool"
        parts = [part] if part == "all" else [part, "test"]
        if backbone in self.viewed:
            parts += [view_part(part, v.recipe, number) for v in self.views for number in range(v.count)]
        return all(store.has(dataset, backbone, name) for name in parts)


def wanted_features(studies: Iterable[Study], keep: Callable[[Cell], bool]) -> dict[str, Needs]:
    """What these cells need, by dataset."""
    found: dict[str, Needs] = {}
    for study in studies:
        for cell, specs in study.cells().items():
            if not keep(cell):
                continue
            needs = found.setdefault(cell.dataset, Needs(pool_cap=study.pool_cap))
            needs.tiers.setdefault(cell.backbone, set()).add(cell.tier)
            for views in {spec.views for spec in specs if spec.views is not None}:
                needs.viewed.add(cell.backbone)
                # Fewer views of a recipe are the first of its more.
                alike = [known for known in needs.views if known.recipe == views.recipe]
                draws = set().union(*(needs.views.pop(known) for known in alike))
                most = max(known.count for known in (views, *alike))
                needs.views[Views(views.recipe, most)] = draws | {(cell.shots, cell.seed, cell.profile)}
    return found


def encode_wanted(wanted: Mapping[str, Needs], store: Store, sources: Sources) -> dict[tuple[str, str], str]:
    """Encode what is lacking; returns why a (dataset, backbone) could not be."""
    failed: dict[tuple[str, str], str] = {}
    loaded: dict[str, Encoder | KshotError] = {}
    for dataset, needs in wanted.items():
        lacking = needs.lacking(store, dataset)
        if not lacking:
            continue
        keep = sources.keep_shards or store.root / SHARDS
        try:
            origin = sources.origin(dataset)
            source = origin.open(keep)
            jobs = []
            for backbone in lacking:
                encoder = _encoder(backbone, sources, loaded)
                if isinstance(encoder, KshotError):
                    failed[dataset, backbone] = str(encoder)
                else:
                    jobs.append(_job(origin, source, backbone, encoder, sources))
            failed |= _encode(jobs, store, needs, lacking, origin.template, sources)
            if sources.keep_shards is None:
                shutil.rmtree(keep / dataset, ignore_errors=True)
        except KshotError as error:
            failed = {(dataset, backbone): str(error) for backbone in lacking} | failed
        for reason in dict.fromkeys(why for (name, _), why in failed.items() if name == dataset):
            logger.warning(f"{dataset}: {reason}")
    return failed


def match_sentences(wanted: Mapping[str, Needs], sources: Sources) -> None:
    """Read the class names of every dataset, and say which of them have no sentences."""
    for dataset, needs in wanted.items():
        if any("cupl" in tiers for tiers in needs.tiers.values()):
            try:
                origin = sources.origin(dataset)
                classes = origin.open(sources.keep_shards)
                tier_prompts(dataset, classes, origin.template, ["cupl"], sources.sentences)
                logger.info(f"sentences of {dataset}: {len(classes.classes)} classes")
            except KshotError as error:
                logger.warning(f"sentences of {dataset}: {error}")


def _encoder(backbone: str, sources: Sources, loaded: dict[str, Encoder | KshotError]) -> Encoder | KshotError:
    if backbone not in loaded:
        try:
            loaded[backbone] = load_encoder(backbone, sources.weights.get(backbone), sources.device)
        except KshotError as error:
            loaded[backbone] = error
    return loaded[backbone]


def _job(origin: Origin, source: Source, backbone: str, encoder: Encoder, sources: Sources) -> Encoding:
    about = {"licence": origin.licence, "protocol": origin.protocol}
    return Encoding(origin.dataset, backbone, source, encoder, **about, batch=sources.batch, threads=sources.threads)


def _encode(
    jobs: Sequence[Encoding],
    store: Store,
    needs: Needs,
    lacking: Mapping[str, set[str]],
    template: str | None,
    sources: Sources,
) -> dict[tuple[str, str], str]:
    """Pictures by all encoders in one pass, then the tiers that each lacks; an encoder that differs from its earlier
    features is left out."""
    failed = {}
    for job in list(jobs):
        try:
            check_reference(job, store)
        except KshotError as error:
            failed[job.dataset, job.backbone] = str(error)
    fit = [job for job in jobs if (job.dataset, job.backbone) not in failed]
    if not fit:
        return failed
    names = sorted(set().union(*lacking.values()))
    prompts = tier_prompts(fit[0].dataset, fit[0].source, template, names, sources.sentences)
    encode_pictures(fit, store, needs.views, needs.pool_cap, needs.viewed)
    for job in fit:
        encode_tiers(job, store, {tier: prompts[tier] for tier in names if tier in lacking[job.backbone]})
    return failed
