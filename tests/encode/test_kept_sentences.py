"""The sentences that come with kshot: complete, plain, each about its class."""

import json
import re
from collections import Counter
from itertools import chain

import pytest

from kshot.data.catalog import datasets
from kshot.data.store import BUNDLED, read_manifest
from kshot.encode.prompts import from_kept
from kshot.encode.sentences import QUESTIONS, kept_sentences, match_classes, spelling

PAPER = {
    "Aircraft": 100,
    "Caltech101": 102,
    "Cars": 196,
    "DTD": 47,
    "EuroSAT": 10,
    "Flowers102": 102,
    "Food101": 101,
    "ImageNet": 1000,
    "Pets": 37,
    "SUN397": 397,
}


def masked(sentence: str, name: str) -> str:
    """The sentence's words with those of the class's name as X."""
    stems = [word[: max(4, len(word) - 2)] for word in re.findall(r"[a-z0-9]+", name.lower())]
    words = ("X" if any(w.startswith(s) for s in stems) else w for w in re.findall(r"[a-z0-9']+", sentence.lower()))
    return re.sub(r"X( X)+", "X", " ".join(words))


def everything():
    return [(name, s) for classes in kept_sentences().values() for name, own in classes for s in own]


def test_every_class_has_a_sentence_for_each_question():
    kept = kept_sentences()
    assert {name: len(kept[name]) for name in PAPER} == PAPER
    assert set(PAPER) <= set(datasets())
    for path in sorted(BUNDLED.glob("*/lite0/text-dataset.json")):
        manifest = read_manifest(path)
        assert [name for name, _ in kept[manifest.dataset]] == list(manifest.classes)
    assert all(len(own) == len(QUESTIONS) for classes in kept.values() for _, own in classes)


def test_the_names_are_those_of_the_paper(pytestconfig):
    folder = pytestconfig.rootpath.parent / "shared" / "classnames"
    if not folder.is_dir():
        pytest.skip("the class names are not beside the repository")
    for name in PAPER:
        assert [c for c, _ in kept_sentences()[name]] == (folder / f"{name}.txt").read_text("utf-8").splitlines()


def test_sentences_are_plain_text_of_6_to_40_words_and_no_two_are_the_same():
    sentences = [sentence for _, sentence in everything()]
    assert all(6 <= len(s.split()) <= 40 and s.isascii() and s.isprintable() for s in sentences)
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("end", ["start", "end", "whole"])
def test_no_template_covers_more_than_two_per_cent(end):
    texts = [masked(sentence, name).split() for name, sentence in everything()]
    part = {"start": lambda w: w[:3], "end": lambda w: w[-3:], "whole": lambda w: w}[end]
    (_, most), *_ = Counter(tuple(part(words)) for words in texts).most_common(1)
    assert most <= 0.02 * len(texts)


def test_classes_are_matched_by_spelling_in_order():
    kept = [("Black-footed Cat", ["a"]), ("sunglasses", ["b"]), ("sunglasses", ["c"])]
    names = ["the black_footed cat", "sunglasses", "Sunglasses", "unheard of"]
    assert match_classes(names, kept) == [["a"], ["b"], ["c"], None]


def test_two_names_of_imagenet_are_spelt_alike_and_no_others():
    for dataset, classes in kept_sentences().items():
        repeated = [key for key, count in Counter(spelling(name) for name, _ in classes).items() if count > 1]
        assert repeated == (["missile", "sunglasses"] if dataset == "ImageNet" else []), dataset
    assert len(list(chain.from_iterable(kept_sentences().values()))) == 2092 + 134


def test_the_tier_uses_the_kept_sentences_and_reports_classes_without(caplog):
    pets = [name for name, _ in kept_sentences()["Pets"]]
    first = kept_sentences()["Pets"][0][1]
    prompts = from_kept("Pets", [pets[0].upper(), "unheard of", *pets[1:3]], "a photo of a {}, a type of pet.")
    assert [p.endswith(s) for p, s in zip(prompts[0], first, strict=True)] == [True] * 3
    assert prompts[1] == ["a photo of a unheard of, a type of pet."]
    assert [len(own) for own in prompts] == [3, 1, 3, 3]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "1 of 4" in warning
    assert "unheard of" in warning


@pytest.mark.parametrize(
    "name", ["Pets.json", "all_prompts/full_prompts/pets_prompts_full.json", "pet_prompts_full.json"]
)
def test_a_folder_with_a_file_per_dataset_is_matched_and_reported_alike(tmp_path, caplog, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(
        json.dumps({"The Abyssinian": ["It has large ears."], "American_Bulldog": ["It barks."]})
    )
    found = from_kept("Pets", ["abyssinian", "american bulldog", "Beagle"], "a photo of a {}.", tmp_path)
    assert found == [["abyssinian. It has large ears."], ["american bulldog. It barks."], ["a photo of a Beagle."]]
    assert "1 of 3 classes of Pets have no sentences and get the template 'a photo of a {}.': Beagle." in caplog.text
    river = from_kept("EuroSAT", ["River"], None, tmp_path)
    assert "has no file of EuroSAT; the sentences that come with kshot are taken" in caplog.text
    assert river == from_kept("EuroSAT", ["River"], None)
