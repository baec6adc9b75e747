"""A real open_clip model, tiny and random: everything but the meaning of its features can be checked."""

import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kshot.encode.encoders import load_encoder
from kshot.encode.openclip import _library, load_open_clip
from kshot.encode.preprocess import Preprocessing
from kshot.encode.reference_vectors import compare_with_reference
from kshot.errors import FeatureError, KshotError
from picture_sets import picture, write_siglip

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def encoder(tiny_clip):
    return load_open_clip("ViT-B-32-quickgelu", tiny_clip)


def some_picture(width, height):
    from PIL import Image

    return Image.open(io.BytesIO(picture(1, width, (width, height))))


@settings(max_examples=25)
@given(st.integers(8, 90), st.integers(8, 90), st.sampled_from(["shortest", "squash"]))
def test_preprocessing_equals_open_clips_own(width, height, mode):
    library = _library()
    theirs = library.transform.image_transform(
        32, is_train=False, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.25), resize_mode=mode, interpolation="bicubic"
    )
    ours = Preprocessing(32, (0.4, 0.5, 0.6), (0.2, 0.3, 0.25), mode)
    image = some_picture(width, height)
    np.testing.assert_allclose(ours(image), theirs(image).numpy(), atol=1e-5)


def test_features_are_the_models_own_at_unit_length(encoder):
    batch = np.stack([encoder.preprocessing(some_picture(50, 40)) for _ in range(3)])
    with torch.inference_mode():
        theirs = encoder.model.encode_image(torch.from_numpy(batch), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_images(batch), theirs, atol=1e-6)


def test_prompts_keep_the_norm_they_had(encoder):
    found = encoder.encode_prompts(["a photo of a cat.", "a dog"])
    with torch.inference_mode():
        raw = encoder.model.encode_text(encoder.tokenizer(["a photo of a cat.", "a dog"])).numpy()
    np.testing.assert_allclose(found.unit * found.norms[:, None], raw, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found.unit, axis=1), 1, atol=1e-6)


def test_facts_come_from_the_checkpoint(encoder):
    assert encoder.logit_scale == pytest.approx(1 / 0.07, rel=1e-5)  # what open_clip initialises it to
    assert encoder.logit_bias is None
    assert encoder.dim == 24
    facts = encoder.facts()
    assert facts["activation"] == "QuickGELU"
    assert facts["preprocessing"]["mean"] == [0.4, 0.5, 0.6]
    assert len(facts["weights_sha256"]) == 64


@pytest.fixture
def changed(tiny_clip, tmp_path):
    """The same weights under a configuration with one thing changed; without an edit, other weights."""

    def change(edit):
        folder = tmp_path / "changed"
        shutil.copytree(tiny_clip, folder)
        config = json.loads((folder / "open_clip_config.json").read_text())
        if edit:
            edit(config)
        (folder / "open_clip_config.json").write_text(json.dumps(config))
        found = load_open_clip("ViT-B-32-quickgelu", folder)
        if not edit:
            with torch.no_grad():
                found.model.visual.proj += 0.02 * torch.randn_like(found.model.visual.proj)
        return found

    return change


@pytest.mark.parametrize(
    "edit",
    [
        lambda config: config["model_cfg"].update(quick_gelu=False),
        lambda config: config["preprocess_cfg"].update(mean=[0.5, 0.5, 0.5]),
        lambda config: config["preprocess_cfg"].update(resize_mode="squash"),
        lambda config: config["preprocess_cfg"].update(interpolation="bilinear"),
        None,
    ],
    ids=["activation", "mean", "resize", "interpolation", "weights"],
)
def test_a_changed_encoder_is_refused_by_its_reference_vectors(encoder, changed, tmp_path, edit):
    kept = tmp_path / "reference" / "tiny.safetensors"
    compare_with_reference(encoder, "tiny", [kept])
    compare_with_reference(encoder, "tiny", [kept])
    other = changed(edit)
    with pytest.raises(FeatureError, match="tiny does not encode as it did before"):
        compare_with_reference(other, "tiny", [kept])


def test_openai_weights_without_quickgelu_are_refused(monkeypatch):
    """open_clip only warns, so the download is replaced by nothing and the warning must stop us."""
    library = _library()
    monkeypatch.setattr(library.factory, "download_pretrained", lambda *_, **__: None)
    with pytest.raises(KshotError, match=r"another activation than the weights 'openai'.*ViT-B-32-quickgelu"):
        load_open_clip("ViT-B-32", "openai")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ViT-B-23", "unknown backbone 'ViT-B-23'. Did you mean ViT-B-32"),
        ("ViT-B-32-256", r"needs weights: --backbone ViT-B-32-256/TAG \(known: datacomp_s34b_b86k\)"),
    ],
)
def test_names(name, message):
    with pytest.raises(KshotError, match=message):
        load_encoder(name)


def test_a_checkpoint_that_is_a_pickle_is_not_run(tmp_path):
    trap = tmp_path / "trap.pt"
    trap.write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "owned").encode() + b"'\ntR.")
    for backbone in ("ViT-B-32", "DINOv2-B-14"):
        with pytest.raises(KshotError, match=f"cannot load {backbone}"):
            load_encoder(backbone, trap)
    assert not (tmp_path / "owned").exists()


@pytest.fixture(scope="module")
def siglip(tmp_path_factory):
    return write_siglip(tmp_path_factory.mktemp("tiny_siglip"), ["a", "photo", "of", "red", "blue"])


def test_siglips_tokenizer_comes_with_a_local_folder(siglip):
    found = load_open_clip("SigLIP-B-16", siglip)
    assert found.logit_bias == pytest.approx(-10)
    tokens = torch.tensor([[2, 3, 4, 2, 5, *[0] * 11]])  # "a photo of a red", lower case without its full stop
    with torch.inference_mode():
        alone = found.model.encode_text(tokens).numpy()[0]
    np.testing.assert_allclose(
        found.encode_prompts(["A photo of a red."]).unit[0], alone / np.linalg.norm(alone), atol=1e-6
    )


def test_siglip_without_transformers_prints_the_pip_command(siglip, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(KshotError, match=r"needs transformers, which is not installed.*'kshot\[encode\]'"):
        load_open_clip("SigLIP-B-16", siglip)


def test_siglip_offline_is_one_sentence(tmp_path):
    """Nobody listens at the port, and the cache is empty; the hub's own library would try for a minute."""
    program = (
        "import kshot.encode.encoders as e\ntry: e.load_encoder('SigLIP2-B-16')\nexcept e.KshotError as f: print(f)"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    said = done.stdout.strip()
    assert (done.stderr, len(said.splitlines())) == ("", 1)
    assert said.startswith("cannot load the tokenizer of ViT-B-16-SigLIP2: the hub cannot be reached ([Errno 111]")
    assert "it is not in the hub's cache. Run it once with a connection, or give weights" in said


def test_a_model_in_memory_is_the_model_by_name(tiny_clip):
    import open_clip

    import kshot

    name = "ViT-B-32-quickgelu"
    by_name = load_encoder(name, tiny_clip, "cpu")
    where = f"local-dir:{tiny_clip}"
    held = kshot.Encoder.from_open_clip(open_clip.create_model(where), open_clip.get_tokenizer(where), name)
    assert (held.facts(), held.backbone) == (by_name.facts(), by_name.backbone)
    assert (held.logit_scale, held.logit_bias, held.dim) == (by_name.logit_scale, by_name.logit_bias, by_name.dim)
    inputs = [
        [own.preprocessing(some_picture(50, 40)), own.preprocessing(some_picture(31, 77))] for own in (held, by_name)
    ]
    np.testing.assert_array_equal(held.encode_images(inputs[0]), by_name.encode_images(inputs[1]))
    np.testing.assert_array_equal(held.encode_prompts(["a dog"]).unit, by_name.encode_prompts(["a dog"]).unit)
