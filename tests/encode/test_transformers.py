"""Tiny CLIP, SigLIP and SigLIP 2 of transformers: features are those of the library's own calls."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from hf_models import LENGTH, save_model
from kshot.data.store import Store
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.protocol import Encoder, import_torchvision
from kshot.errors import KshotError
from kshot.pictures.head import PictureHead
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
    held = Encoder.from_transformers(model, processor)
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


def test_commands_use_the_librarys_own_features(saved, kind, tmp_path, kshot, monkeypatch):
    """`encode` stores them in half precision, a head keeps full precision."""
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))
    for number, image in enumerate(pictures()):
        (tmp_path / "photos" / f"class{number % 2}").mkdir(parents=True, exist_ok=True)
        image.save(tmp_path / "photos" / f"class{number % 2}" / f"{number}.png")
    backbone = f"hf:{saved[kind]}"
    images, _ = own_calls(*both(saved[kind]))

    def own(names):
        return images[[int(Path(name).stem) for name in names]]

    encoded = kshot("encode", "photos", "--backbone", backbone, "--tier", "photo", "--batch", "2")
    assert encoded.returncode == 0, encoded.stderr
    stored = Store("features").images("photos", f"hf+{kind}", "all")
    np.testing.assert_allclose(stored.X.astype(np.float32), own(stored.ids).astype(np.float16), atol=1e-3)
    assert stored.manifest.logit_scale == pytest.approx(load_encoder(backbone).logit_scale)

    fitted = kshot("fit", "photos", "--backbone", backbone, "--method", "zero_shot", "--device", "cpu")
    assert f"encoded by {backbone}" in fitted.stdout
    head = PictureHead.load("head.safetensors")
    np.testing.assert_allclose(head.shots.X, own(head.about.shot_names), atol=1e-5)
    predicted = kshot("predict", "head.safetensors", "photos", "--device", "cpu", "--threshold", "0")
    assert "class0" in predicted.stdout


def test_other_weights_and_another_preprocessing_have_another_fingerprint(saved, tmp_path):
    facts = load_encoder(f"hf:{saved['clip']}").facts()
    assert load_encoder(f"hf:{save_model('clip', tmp_path / 'other', seed=1)}").facts() != facts
    model, processor = both(saved["clip"])
    processor.image_processor.image_mean = [0.1, 0.2, 0.3]
    assert Encoder.from_transformers(model, processor).facts() != facts


def test_names_and_refusals(saved, tmp_path):
    assert stored_name("hf:openai/clip-vit-base-patch16@3d74acf") == "hf+openai+clip-vit-base-patch16+3d74acf"
    with pytest.raises(KshotError, match=r"holds no config.json of a transformers model"):
        load_encoder(f"hf:{tmp_path}")
    model, processor = both(saved["clip"])
    with pytest.raises(KshotError, match="has no get_image_features and no get_text_features"):
        Encoder.from_transformers(model.vision_model, processor)
    with pytest.raises(KshotError, match="CLIPImageProcessor has no image_processor"):
        Encoder.from_transformers(model, processor.image_processor)
    # A tensor that the file lacks would be filled with random numbers.
    from safetensors.torch import load_file, save_file

    folder = save_model("clip", tmp_path / "lacking")
    state = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in state.items() if k != "visual_projection.weight"}, folder / "model.safetensors")
    with pytest.raises(KshotError, match=r"lack 1 tensors of its model, first visual_projection.weight"):
        load_encoder(f"hf:{folder}")


def test_views_fill_the_input(saved, kind):
    encoder = load_encoder(f"hf:{saved[kind]}")
    picture = pictures()[0]
    whole = encoder.preprocessing.view(picture.resize((32, 32)), (0, 0, 32, 32), flip=False)
    mirrored = encoder.preprocessing.view(picture.resize((32, 32)), (0, 0, 32, 32), flip=True)
    assert not np.allclose(encoder.encode_images([whole]), encoder.encode_images([mirrored]), atol=1e-4)
    if kind != "siglip2":
        np.testing.assert_allclose(mirrored["pixel_values"][..., ::-1], whole["pixel_values"], atol=1e-6)
