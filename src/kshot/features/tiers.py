"""Prompt tiers of a dataset: which sentences, then prototypes into the store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kshot.encode.prompts import encode_tier, from_sentences, from_templates
from kshot.errors import InputError, unknown
from kshot.features.catalog import tiers
from kshot.features.encoding import Job
from kshot.features.store import Store


def tier_prompts(job: Job, tier: str, sentence_files: Mapping[str, Path]) -> list[list[str]]:
    """Sentences per class: from the user's file of that tier, else from templates."""
    if tier in sentence_files:
        return from_sentences(job.source.classes, sentence_files[tier])
    if tier == "cupl":
        raise InputError(
            "tier cupl needs its sentences: --sentences cupl=FILE.json with {class name: [sentence, …]}."
        )
    if tier not in tiers():
        names = [*tiers(), *sentence_files]
        raise InputError(
            unknown("tier", tier, names, f"Your own tier: --sentences {tier}=FILE.json with its sentences.")
        )
    return from_templates(job.source.classes, _templates(job, tier))


def encode_tiers(job: Job, store: Store, names: Sequence[str], sentence_files: Mapping[str, Path]) -> None:
    """All tiers, after every one of them was found complete."""
    prompts = {name: tier_prompts(job, name, sentence_files) for name in names}
    about = job.about()
    for name, own in prompts.items():
        found = encode_tier(job.encoder.encode_prompts, own)
        unit = found.unit.astype(np.float16)
        store.write_text(job.dataset, job.backbone, name, unit, found.norms, job.source.classes, **about)


def _templates(job: Job, tier: str) -> Sequence[str]:
    generic = tiers()[tier].template
    if generic is not None:
        return [generic]
    if tier == "dataset" and job.template is not None:
        return [job.template]
    if tier == "ensemble" and job.source.templates:
        return job.source.templates
    raise InputError(
        f"no templates are known for tier {tier} of '{job.dataset}'. Leave the tier out, or write its "
        f"sentences: --sentences {tier}=FILE.json with {{class name: [sentence, …]}}."
    )
