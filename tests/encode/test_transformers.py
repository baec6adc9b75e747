"""Tiny CLIP, SigLIP and SigLIP 2 of transformers: features are those of the library's own calls."""

import io
import json

import numpy as np
import pytest
import torch

import kshot
from hf_models import LENGTH, save_model
from kshot.encode.encoders import load_encoder
from kshot.encode.protocol import import_torchvision
from picture_sets import picture

KINDS = ("clip", "siglip", "siglip2")
PROMPTS = ["a photo of a red cat", "The dog.", "a photo of a blue dog on the red green blue cat on the dog"]


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    root = tmp_path_factory.mktemp("hf")
    return {kind: save_model(kind, root / kind) for kind in KINDS}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


def both(folder):
    """The model and its processor, as a notebook loads them."""
    import_torchvision()
    from transformers import AutoModel, AutoProcessor

    return AutoModel.from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)


def pictures():
    from PIL import Image

    return [Image.open(io.BytesIO(picture(n, n, size))) for n, size in enumerate([(50, 40), (33, 70), (64, 64)])]


def own_calls(model, processor):
    """Unit features by the library's own calls alone, all pictures and all prompts at once."""
    with torch.inference_mode():
        images = model.get_image_features(**processor(images=pictures(), return_tensors="pt"))
        length = {"padding": "max_length", "max_length": LENGTH, "truncation": True}
        text = model.get_text_features(**processor(text=PROMPTS, return_tensors="pt", **length))
    rows = [getattr(found, "pooler_output", found) for found in (images, text)]
    return [torch.nn.functional.normalize(own, dim=1).numpy() for own in rows]


def encoded(encoder):
    inputs = [encoder.preprocessing(one) for one in pictures()]
    return encoder.encode_images(inputs), encoder.encode_prompts(PROMPTS).unit


def test_features_of_a_model_in_memory_and_of_its_folder_are_the_librarys_own(saved, kind):
    model, processor = both(saved[kind])
    images, text = own_calls(model, processor)
    named = load_encoder(f"hf:{saved[kind]}", device="cpu")
    held = kshot.Encoder.from_transformers(model, processor)
    for encoder in (named, held):
        found = encoded(encoder)
        np.testing.assert_allclose(found[0], images, atol=1e-5)
        np.testing.assert_allclose(found[1], text, atol=1e-5)
    assert named.facts() == held.facts()
    assert held.backbone == named.backbone == f"hf:{saved[kind]}"
    json.dumps(named.facts())
    # What the library multiplies cosines with, and adds.
    with torch.inference_mode():
        length = {"padding": "max_length", "max_length": LENGTH, "truncation": True}
        said = model(**processor(images=pictures(), text=PROMPTS, return_tensors="pt", **length)).logits_per_image
    np.testing.assert_allclose(
        named.logit_scale * images @ text.T + (named.logit_bias or 0), said.numpy(), rtol=1e-4, atol=1e-4
    )
