"""Datasets, encoders and pictures that are objects of other libraries, and pictures in a scikit-learn pipeline."""

import numpy as np
import pytest
from PIL import Image

import kshot
from colours import COLOURS, ColourEncoder, shade
from kshot.encode.protocol import import_torchvision
from kshot.errors import InputError
from kshot.pictures.fit import fit_folder

CLASSES = sorted(COLOURS)


@pytest.fixture
def files(shades):
    paths = sorted(shades.rglob("*.png"))
    return paths, [path.parent.name for path in paths]


def as_datasets(paths, labels):
    import datasets

    kinds = datasets.Features({"picture": datasets.Image(), "colour": datasets.ClassLabel(names=CLASSES)})
    columns = {"picture": [str(path) for path in paths], "colour": [CLASSES.index(label) for label in labels]}
    return datasets.Dataset.from_dict(columns, features=kinds)


def as_frame(paths, labels):
    import pandas as pd

    return pd.DataFrame({"path": [str(path) for path in paths], "label": labels})


def as_torchvision(paths, labels):
    import_torchvision()
    from torchvision.datasets import ImageFolder

    return ImageFolder(paths[0].parents[1])


@pytest.mark.parametrize("made", [as_datasets, as_frame, as_torchvision])
def test_a_dataset_in_memory_fits_the_head_of_its_folder(made, files, shades):
    given = {"encoder": ColourEncoder(), "method": "loo_blend"}
    folder, held = fit_folder(shades, **given).head, kshot.fit_pictures(made(*files), **given)
    assert held.about.classes == folder.about.classes == tuple(CLASSES)
    assert held.about.backbone == "colours"
    np.testing.assert_allclose(held.shots.X, folder.shots.X, atol=1e-6)
    np.testing.assert_allclose(held.head.coef_, folder.head.coef_, atol=1e-5)
    assert held.about.accuracy == folder.about.accuracy


@pytest.mark.parametrize("made", [as_datasets, as_frame, as_torchvision])
def test_a_dataset_in_memory_is_encoded_like_its_folder(made, files, shades, tmp_path):
    options = {"encoder": ColourEncoder(), "features": tmp_path / "features"}
    folder = kshot.encode_dataset(shades, "folder", **options)
    held = kshot.encode_dataset(made(*files), "held", **options)
    assert held.classes == folder.classes
    np.testing.assert_array_equal(held.text["photo"], folder.text["photo"])
    rows = [np.sort(np.vstack([own.pool.X, own.test.X]), axis=0) for own in (held, folder)]
    np.testing.assert_array_equal(*rows)


def test_splits_become_pool_and_test_and_a_subset_its_rows(files, tmp_path):
    import datasets
    import torch

    paths, labels = files
    test = [number for number in range(len(paths)) if number % 4 == 3]
    train = [number for number in range(len(paths)) if number % 4 != 3]
    whole, tv = as_datasets(paths, labels), as_torchvision(paths, labels)
    by_split = datasets.DatasetDict({"train": whole.select(train), "validation": whole.select(test)})
    subsets = {"train": torch.utils.data.Subset(tv, train), "test": torch.utils.data.Subset(tv, test)}
    for number, data in enumerate((by_split, subsets)):
        found = kshot.encode_dataset(data, f"set{number}", ColourEncoder(), features=tmp_path / "features")
        assert found.pool.y.tolist() == [CLASSES.index(labels[row]) for row in train]
        assert found.test.y.tolist() == [CLASSES.index(labels[row]) for row in test]
        fitted = fit_folder(data, encoder=ColourEncoder(), method="loo_blend")
        assert (len(fitted.head.shots.y), fitted.tested.value) == (len(train), 1.0)


def test_pictures_that_are_left_out_are_told(shades, caplog):
    (shades / CLASSES[0] / "broken.png").write_bytes(b"no picture")
    head = kshot.fit_pictures(shades, encoder=ColourEncoder(), method="loo_blend")
    assert len(head.shots.y) == 12
    assert "broken.png is not a readable picture" in caplog.text


@pytest.mark.parametrize("label", [lambda c: f"{c} ", lambda c: 1 + CLASSES.index(c)])
def test_labels_of_a_frame_that_are_spelt_another_way(files, tmp_path, label):
    """With a space behind some, or as numbers from 1: as many classes as there are."""
    paths, labels = files
    spelt = [label(own) if number % 2 or not isinstance(label(own), str) else own for number, own in enumerate(labels)]
    made = kshot.encode_dataset(as_frame(paths, spelt), "frame", ColourEncoder(), features=tmp_path / "features")
    assert made.classes == (tuple(CLASSES) if isinstance(spelt[0], str) else ("1", "2", "3"))
    assert np.bincount(made.pool.y).tolist() == [3, 3, 3]


def test_refusals_name_what_to_do(files):
    paths, labels = files
    encoder = {"encoder": ColourEncoder()}
    with pytest.raises(InputError, match="the frame has the columns file, label; needed are path, label"):
        kshot.fit_pictures(as_frame(paths, labels).rename(columns={"path": "file"}), **encoder)
    merged = as_torchvision(paths, labels)
    merged.target_transform = lambda label: label // 2
    with pytest.raises(InputError, match="the dataset has a target_transform"):
        kshot.fit_pictures(merged, **encoder)
    tensors = as_torchvision(paths, labels)
    tensors.transform = lambda picture: np.asarray(picture)
    with pytest.raises(InputError, match="is a ndarray, not a picture of Pillow"):
        kshot.fit_pictures(tensors, **encoder)
    with pytest.raises(InputError, match="int is no dataset of pictures"):
        kshot.fit_pictures(3, **encoder)
    with pytest.raises(InputError, match="which holds the images"):
        kshot.fit_pictures(as_datasets(paths, labels).remove_columns("picture"), **encoder)


def mean_colours(pictures):
    return [[*np.asarray(own, float).mean(axis=(0, 1)) / 128 - 1, 0.3] for own in pictures]


def named_colours(prompts):
    found = [[value for name, value in COLOURS.items() if name in prompt] for prompt in prompts]
    return [[*(own[0] if own else (0.1, 0.2, 0.3)), 0.5] for own in found]


def test_two_functions_are_an_encoder(shades, tmp_path):
    encoder = kshot.Encoder(mean_colours, named_colours, name="means", logit_scale=20.0)
    head = kshot.fit_pictures(shades, encoder=encoder, method="clap")
    head.save(tmp_path / "head.safetensors")
    kept = kshot.PictureHead.load(tmp_path / "head.safetensors")
    with pytest.raises(InputError, match=r"Read it with kshot\.PictureHead\.load"):
        kshot.load_head(tmp_path / "head.safetensors")
    shown = [Image.new("RGB", (9, 9), name) for name in ("red", "blue")]
    assert kept.predict(shown, encoder=encoder) == ["red", "blue"]
    assert kept.about.logit_scale == 20.0
    with pytest.raises(InputError, match=r"fitted with Python functions \(means\), which cannot be loaded"):
        kept.predict(shown)
    with pytest.raises(InputError, match="differs in name"):
        kept.predict(shown, encoder=kshot.Encoder(mean_colours, named_colours, name="others"))
    wrong = kshot.Encoder(lambda pictures: np.ones(3), named_colours, name="wrong")
    with pytest.raises(InputError, match=r"the encoder wrong returned \(3,\) for 12 inputs"):
        kshot.fit_pictures(shades, encoder=wrong)
    found = kshot.encode_dataset(shades, "shades", encoder, features=tmp_path / "features")
    assert found.stratum.backbone == "means"


def test_functions_that_return_unit_rows_do_not_tell_the_norm_of_text(shades, tmp_path):
    """The anchors of CLAP are then those of the norm that heads assume, 10, through every door."""

    def scaled(length):
        def encode(prompts):
            rows = np.array(named_colours(prompts))
            return length * rows / np.linalg.norm(rows, axis=1, keepdims=True)

        return kshot.Encoder(mean_colours, encode, name=f"length-{length:g}", logit_scale=20.0)

    raw, unit = scaled(10.0), scaled(1.0)
    heads = [kshot.fit_pictures(shades, encoder=encoder, method="clap").head for encoder in (raw, unit)]
    for encoder in (raw, unit):
        made = kshot.encode_dataset(shades, "set", encoder, features=tmp_path / "features")
        heads.append(made.episode(2).fit(kshot.CLAP()))
        step = kshot.EncodePictures(encoder)
        assert step.constants_of(CLASSES) == {"logit_scale": 20.0} | ({} if encoder is unit else {"anchor_scale": 10.0})
    np.testing.assert_allclose(heads[0].coef_, heads[1].coef_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(heads[2].coef_, heads[3].coef_, rtol=1e-3, atol=1e-2)
    assert [head.selected_["anchor_scale"].from_ for head in heads] == ["encoder", "assumed"] * 2


def test_the_head_of_pictures_as_a_torch_module_has_its_probabilities(shades):
    import torch

    head = kshot.fit_pictures(shades, encoder=ColourEncoder(), method="clap")
    module = head.to_torch()
    said = torch.softmax(module(torch.from_numpy(head.shots.X)), dim=1).detach().numpy()
    np.testing.assert_allclose(said, head.probabilities(head.shots.X), atol=1e-5)
    assert module.classes == CLASSES


def test_pipeline_and_cross_validation_with_pictures(files, tmp_path):
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    paths, labels = files
    step = kshot.EncodePictures(ColourEncoder())
    pipeline = make_pipeline(step, kshot.CLAP(epochs=20))
    text = {"clap__text": step.text_of(CLASSES), "clap__classes": list(CLASSES)}
    text["clap__constants"] = step.constants_of(CLASSES)
    assert cross_val_score(pipeline, paths, labels, cv=4, params=text).tolist() == [1.0] * 4
    rng = np.random.default_rng(5)
    shade(tmp_path / "new.png", "green", rng)
    pipeline.fit(paths, labels, **text)
    assert pipeline.predict([tmp_path / "new.png", Image.new("RGB", (9, 9), "blue")]).tolist() == ["green", "blue"]
    kshot.save_head(pipeline[-1], tmp_path / "head.safetensors")
    again = make_pipeline(step, kshot.load_head(tmp_path / "head.safetensors"))
    np.testing.assert_array_equal(again.predict_proba(paths), pipeline.predict_proba(paths))
