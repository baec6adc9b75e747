"""Prompt tiers: classes to sentences, sentences to prototypes, prototypes into the store."""

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from kshot.data.catalog import COOP_SUFFIX, tiers
from kshot.data.store import Store
from kshot.encode.protocol import PromptFeatures, known_norms
from kshot.encode.sentences import kept_sentences, match_classes, sentence_file, spelling, split_words
from kshot.encode.sources.source import Source, read_json, readable_class
from kshot.encode.targets import Encoding
from kshot.errors import InputError, unknown
from kshot.progress import Progress

PROMPT_BATCH = 256
logger = logging.getLogger(__name__)

Prompts = dict[str, list[list[str]]]


def from_templates(classes: Sequence[str], templates: Sequence[str]) -> list[list[str]]:
    """Every template filled with every class name as words; {} or {c} stands for the name."""
    for template in templates:
        if "{}" not in template and "{c}" not in template:
            raise InputError(f"template '{template}' has no {{}} for the class name.")
    names = map(readable_class, classes)
    return [[t.replace("{c}", name).replace("{}", name) for t in templates] for name in names]


def from_sentences(classes: Sequence[str], file: Path) -> list[list[str]]:
    """The sentences of a JSON file {class: [sentences]}; the class name is put in front of a sentence without it.

    Names match by `spelling`. One error lists all missing and ambiguous names.
    """
    written = _read(file)
    by_key: dict[str, list[str]] = {}
    for name in written:
        by_key.setdefault(spelling(name), []).append(name)
    missing = [name for name in classes if spelling(name) not in by_key]
    ambiguous = [names for name in classes if len(names := by_key.get(spelling(name), [])) > 1]
    empty = [name for name in classes if not missing and not written[by_key[spelling(name)][0]]]
    if missing or ambiguous or empty:
        problems = [f"missing: {', '.join(missing)}"] if missing else []
        problems += [f"ambiguous: {' = '.join(names)}" for names in ambiguous]
        problems += [f"without sentences: {', '.join(empty)}"] if empty else []
        raise InputError(f"{file} does not fit the classes; {'; '.join(problems)}.")
    return [[_with_name(s, name) for s in written[by_key[spelling(name)][0]]] for name in classes]


def from_kept(
    dataset: str, classes: Sequence[str], template: str | None, folder: Path | None = None
) -> list[list[str]]:
    """The sentences that come with kshot, or those of a folder with a file per dataset.

    A class without sentences gets the dataset's template, with a warning.
    """
    base = dataset.removesuffix(COOP_SUFFIX)
    kept = kept_sentences().get(base)
    if folder is not None:
        file = sentence_file(folder, base)
        if file is not None:
            kept = [(name, own) for name, own in _read(file).items() if own]
        else:
            logger.warning(f"{folder} has no file of {base}; the sentences that come with kshot are taken.")
    if kept is None:
        raise InputError(
            f"kshot has no sentences about the classes of {dataset}. Give yours: --sentences cupl=FILE.json with "
            "{class name: [sentence, …]}."
        )
    found = match_classes(classes, kept)
    unmatched = [name for name, own in zip(classes, found, strict=True) if own is None]
    template = template or tiers()["photo"].template or "{}"
    if unmatched:
        logger.warning(
            f"{len(unmatched)} of {len(classes)} classes of {dataset} have no sentences and get the template "
            f"'{template}': {', '.join(unmatched)}."
        )
    filled = from_templates(classes, [template])
    return [
        instead if own is None else [_with_name(sentence, name) for sentence in own]
        for name, own, instead in zip(classes, found, filled, strict=True)
    ]


def tier_prompts(
    dataset: str, source: Source, template: str | None, names: Sequence[str], sentence_files: Mapping[str, Path]
) -> Prompts:
    """Sentences per class for every tier: from the user's file or folder, else kept ones or templates."""
    prompts: Prompts = {}
    for name in names:
        given = sentence_files.get(name)
        if given is not None and given.is_file():
            prompts[name] = from_sentences(source.classes, given)
        elif given is not None or name == "cupl":
            prompts[name] = from_kept(dataset, source.classes, template, given)
        else:
            prompts[name] = from_templates(source.classes, _templates(source, template, name, sentence_files))
    return prompts


def encode_tier(
    encode_prompts: Callable[[Sequence[str]], PromptFeatures], prompts: Sequence[Sequence[str]], what: str = "prompts"
) -> PromptFeatures:
    """Per class: each prompt normalised, averaged, normalised again; the norm is the prompts' mean norm."""
    flat = [prompt for own in prompts for prompt in own]
    batches = []
    with Progress(what, len(flat), ends=False) as progress:
        for start in range(0, len(flat), PROMPT_BATCH):
            batches.append(encode_prompts(flat[start : start + PROMPT_BATCH]))
            progress.advance(len(batches[-1].norms))
    encoded = PromptFeatures(*(np.concatenate(rows) for rows in zip(*batches, strict=True)))
    ends = np.cumsum([len(own) for own in prompts])[:-1]
    means = np.stack([rows.mean(axis=0, dtype=np.float64) for rows in np.split(encoded.unit, ends)])
    norms = np.array([rows.mean() for rows in np.split(encoded.norms, ends)], np.float32)
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    return PromptFeatures(unit.astype(np.float32), norms)


def encode_tiers(job: Encoding, store: Store, prompts: Prompts) -> None:
    """Write the prototypes of every tier into the store."""
    for name, own in prompts.items():
        what = f"prompts of {job.dataset} by {job.backbone}, tier {name}"
        prototypes = encode_tier(job.encoder.encode_prompts, own, what)
        unit, norms = prototypes.unit.astype(np.float16), known_norms(prototypes.norms)
        store.write_text(job.dataset, job.backbone, name, unit, norms, job.source.classes, **job.about())


def _templates(source: Source, template: str | None, tier: str, sentence_files: Mapping[str, Path]) -> Sequence[str]:
    if tier not in tiers():
        names = [*tiers(), *sentence_files]
        raise InputError(
            unknown("tier", tier, names, f"Your own tier: --sentences {tier}=FILE.json with its sentences.")
        )
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


def _read(file: Path) -> Mapping[str, list[str]]:
    content = read_json(file)
    fits = isinstance(content, dict) and all(
        isinstance(own, list) and all(isinstance(s, str) for s in own) for own in content.values()
    )
    if not fits:
        raise InputError(f"{file} must hold {{class name: [sentence, …]}}.")
    return content


def _with_name(sentence: str, name: str) -> str:
    """The sentence, after the name unless successive whole words of it spell the name or its plural."""
    words, key = split_words(sentence), "".join(split_words(name))
    runs = (run for start in range(len(words)) for run in accumulate(words[start:]))
    return (
        sentence if any(run in (key, f"{key}s", f"{key}es") for run in runs) else f"{readable_class(name)}. {sentence}"
    )
