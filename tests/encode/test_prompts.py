import json

import numpy as np
import pytest

from kshot.encode.prompts import encode_tier, from_sentences, from_templates
from kshot.encode.protocol import PromptFeatures
from kshot.errors import InputError


def count_letters(prompts):
    """A text tower that can be checked by hand."""
    rows = np.array([[p.count("a"), p.count("b"), 1.0] for p in prompts], np.float32)
    norms = np.linalg.norm(rows, axis=1)
    return PromptFeatures(rows / norms[:, None], norms)


def test_each_prompt_is_normalised_before_and_after_averaging():
    found = encode_tier(count_letters, [["aaa", "b"], ["ab"]])
    first = np.array([3, 0, 1]) / np.sqrt(10) + np.array([0, 1, 1]) / np.sqrt(2)
    np.testing.assert_allclose(found.unit[0], first / np.linalg.norm(first), rtol=1e-6)
    np.testing.assert_allclose(found.norms, [(np.sqrt(10) + np.sqrt(2)) / 2, np.sqrt(3)], rtol=1e-6)


def test_templates_of_both_kinds():
    assert from_templates(["cat"], ["a {}.", "the {c}!"]) == [["a cat.", "the cat!"]]
    with pytest.raises(InputError, match=r"template 'a photo' has no \{\}"):
        from_templates(["cat"], ["a photo"])


def test_names_are_words_whatever_door_they_come_by(tmp_path):
    """Folders, splits and schemas give words; CSV files, label files and frames give names as they stand there."""
    names = ["golden_retriever", "  golden   retriever "]
    assert from_templates(names, ["a {}."]) == [["a golden retriever."]] * 2
    path = sentences(tmp_path, {"golden retriever": ["It is yellow."]})
    assert from_sentences(names[:1], path) == [["golden retriever. It is yellow."]]


def sentences(tmp_path, content):
    path = tmp_path / "cupl.json"
    path.write_text(json.dumps(content))
    return path


def test_names_match_by_letters_and_digits_and_stand_in_every_sentence(tmp_path):
    path = sentences(tmp_path, {"A_340-300": ["It has four engines.", "The A340 300 is long."], "other": []})
    assert from_sentences(["a340 300"], path) == [["a340 300. It has four engines.", "The A340 300 is long."]]


def test_missing_and_ambiguous_names_are_told_at_once(tmp_path):
    path = sentences(tmp_path, {"T-Shirt": ["x"], "t shirt": ["y"], "bag": ["z"]})
    with pytest.raises(InputError, match=r"missing: coat, hat; ambiguous: T-Shirt = t shirt\."):
        from_sentences(["t-shirt", "bag", "coat", "hat"], path)
    with pytest.raises(InputError, match="without sentences: bag"):
        from_sentences(["bag"], sentences(tmp_path, {"bag": []}))


@pytest.mark.parametrize("content", [[1], {"a": "text"}, {"a": [1]}])
def test_files_of_another_shape(tmp_path, content):
    with pytest.raises(InputError, match="must hold"):
        from_sentences(["a"], sentences(tmp_path, content))


@pytest.mark.parametrize(
    ("name", "sentence", "named"),
    [
        ("ant", "a giant insect", False),
        ("ant", "An ant, seen from above.", True),
        ("ant", "Ants have six legs.", True),
        ("rat", "a decorated wall", False),
        ("t-shirt", "a white tshirt", True),
        ("tshirt", "a white T-shirt", True),
        ("ice cream", "a nice creamy cake", False),
        ("glass", "Two glasses on a table.", True),
        ("Élan", "an élan in a forest", True),
    ],
)
def test_only_whole_words_name_a_class(name, sentence, named, tmp_path):
    path = sentences(tmp_path, {name: [sentence]})
    assert from_sentences([name], path) == [[sentence if named else f"{name}. {sentence}"]]
