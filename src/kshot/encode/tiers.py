"""Prompt tiers of a dataset: which sentences, then prototypes into the store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kshot.data.catalog import tiers
from kshot.data.store import Store
from kshot.encode.prompts import encode_tier, from_sentences, from_templates
from kshot.encode.sources.source import Source
from kshot.encode.targets import Encoding
from kshot.errors import InputError, unknown
from kshot.progress import Progress

Prompts = dict[str, list[list[str]]]


def tier_prompts(
    source: Source, template: str | None, names: Sequence[str], sentence_files: Mapping[str, Path]
) -> Prompts:
    """Sentences per class for every tier: from the user's file of that tier, else from templates."""
    return {name: _prompts(source, template, name, sentence_files) for name in names}


def encode_tiers(job: Encoding, store: Store, prompts: Prompts) -> None:
    about = job.about()
    for name, own in prompts.items():
        total = sum(map(len, own))
        with Progress(f"prompts of {job.dataset}, tier {name}", total) as progress:
            prototypes = encode_tier(job.encoder.encode_prompts, own, progress.advance)
        unit = prototypes.unit.astype(np.float16)
        store.write_text(job.dataset, job.backbone, name, unit, prototypes.norms, job.source.classes, **about)


def _prompts(source: Source, template: str | None, tier: str, sentence_files: Mapping[str, Path]) -> list[list[str]]:
    if tier in sentence_files:
        return from_sentences(source.classes, sentence_files[tier])
    if tier == "cupl":
        raise InputError("tier cupl needs its sentences: --sentences cupl=FILE.json with {class name: [sentence, …]}.")
    if tier not in tiers():
        names = [*tiers(), *sentence_files]
        raise InputError(
            unknown("tier", tier, names, f"Your own tier: --sentences {tier}=FILE.json with its sentences.")
        )
    return from_templates(source.classes, _templates(source, template, tier))


def _templates(source: Source, template: str | None, tier: str) -> Sequence[str]:
    generic = tiers()[tier].template
    if generic is not None:
        return [generic]
    if tier == "dataset" and template is not None:
        return [template]
    if tier == "ensemble" and source.templates:
        return source.templates
    raise InputError(
        f"no templates are known for tier {tier} of {source.origin}. Leave the tier out, or write its "
        f"sentences: --sentences {tier}=FILE.json with {{class name: [sentence, …]}}."
    )
