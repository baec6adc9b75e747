"""Shots of one dataset, test pictures of another."""

import numpy as np
import pytest
from kshot.bench.work import strata_of

import kshot
from kshot.bench.study import Grid, MethodSpec, Study
from kshot.data.catalog import ShiftEntry, shifts
from kshot.data.features import load_features
from kshot.data.shifts import is_shift_written, write_shift
from kshot.data.store import Store
from kshot.errors import FeatureError

OPEN = ["clipart-to-emoji", "emoji-to-clipart", "clipart-to-tuxpaint"]


@pytest.mark.parametrize("name", OPEN)
def test_pictures_and_text_are_those_of_the_two_datasets(name, tmp_path):
    store, shift = Store(tmp_path), shifts()[name]
    write_shift(shift, "lite0", store)
    found = load_features(name, "lite0", features=tmp_path)
    train, test = (load_features(d, "lite0", features=tmp_path) for d in (shift.train, shift.test))
    assert set(found.classes) == set(shift.classes)
    rows = [train.classes.index(own) for own in found.classes]
    assert np.allclose(found.text["dataset"], train.text["dataset"][rows], atol=1e-6)
    for part, ids, other, names in (
        (found.pool, found.stratum.pool_ids, train, list(found.classes)),
        (found.test, found.stratum.test_ids, test, [shift.classes[own] for own in found.classes]),
    ):
        whole = np.concatenate([other.pool.X, other.test.X])
        labels = np.concatenate([other.pool.y, other.test.y])
        known = [f"{other.stratum.dataset}/{one}" for one in (*other.stratum.pool_ids, *other.stratum.test_ids)]
        place = [known.index(one) for one in ids]
        assert np.allclose(part.X, whole[place], atol=1e-6)
        assert [other.classes[label] for label in labels[place]] == [names[label] for label in part.y]


def test_a_study_writes_the_shift_that_it_needs(tmp_path):
    grid = Grid(("clipart-to-emoji",), ("lite0",), ("dataset",), (2,), (0,), (MethodSpec("ncm", "ncm"),))
    sizes = strata_of(Study("s", (grid,)), Store(tmp_path), must_be_stored=True)
    assert sizes["clipart-to-emoji", "lite0"].classes == 13
    assert is_shift_written(shifts()["clipart-to-emoji"], "lite0", Store(tmp_path))


def test_classes_of_equal_names_are_found_without_a_map(tmp_path):
    write_shift(ShiftEntry("s", "S", "openclipart", "tuxpaint"), "lite0", Store(tmp_path))
    found = load_features("s", "lite0", features=tmp_path)
    assert set(found.classes) == {"animals", "food", "vehicles"}


def test_a_map_that_names_no_class(tmp_path):
    wrong = ShiftEntry("s", "S", "openclipart", "tuxpaint", {"animals": "beasts", "food": "food"})
    with pytest.raises(FeatureError, match="no class tuxpaint 'beasts'"):
        write_shift(wrong, "lite0", Store(tmp_path))
    with pytest.raises(FeatureError, match="0 classes in common"):
        write_shift(ShiftEntry("s", "S", "digits", "cifar10"), "lite0", Store(tmp_path))


def encoded_again(dataset, features, **about):
    """The bundled features once more, without the first half of every picture's vector."""
    bundled, store = Store("nothing"), Store(features)
    for manifest in [m for m in bundled.bundled() if (m.dataset, m.backbone) == (dataset, "lite0")]:
        stated = {"encoder": manifest.encoder, "logit_scale": manifest.logit_scale} | about
        if manifest.part.startswith("text-"):
            tier = manifest.part.removeprefix("text-")
            text = np.array(bundled.text(dataset, "lite0", tier).prototypes)
            store.write_text(dataset, "lite0", tier, text, None, manifest.classes, **stated)
        else:
            images = bundled.images(dataset, "lite0", manifest.part)
            X, y = np.array(images.X), np.array(images.y)
            X[:, : X.shape[1] // 2] = 0
            store.write_images(dataset, "lite0", manifest.part, X, y, images.ids, manifest.classes, **stated)


def load_by_a_study(tmp_path):
    grid = Grid(("clipart-to-emoji",), ("lite0",), ("dataset",), (2,), (0,), (MethodSpec("ncm", "ncm"),))
    strata_of(Study("s", (grid,)), Store(tmp_path), must_be_stored=True)
    return load_features("clipart-to-emoji", "lite0", features=tmp_path)


def load_in_python(tmp_path):
    return load_features("clipart-to-emoji", "lite0", features=tmp_path)


@pytest.mark.parametrize("load", [load_by_a_study, load_in_python])
@pytest.mark.parametrize("again", ["openclipart", "emoji"])
def test_a_shift_is_made_again_of_what_was_encoded_again(load, again, tmp_path):
    before = load(tmp_path)
    assert np.array_equal(load(tmp_path).test.X, before.test.X)
    encoded_again(again, tmp_path)
    after = load(tmp_path)
    side = "pool" if again == "openclipart" else "test"
    half = after.test.X.shape[1] // 2
    assert not getattr(after, side).X[:, :half].any()
    assert getattr(before, side).X[:, :half].any()


def test_other_constants_of_the_same_bytes_make_the_shift_again(tmp_path):
    for scale in (50.0, 70.0):
        for dataset in ("openclipart", "emoji"):
            encoded_again(dataset, tmp_path, logit_scale=scale)
        assert load_in_python(tmp_path).stratum.logit_scale == scale


@pytest.mark.parametrize("tiers", [("photo", "dataset", "ensemble"), ("photo",), ()])
@pytest.mark.parametrize("whole", [False, True])
def test_features_that_somebody_stored_under_the_name_of_a_shift_stay(tmp_path, whole, tiers):
    """With all tiers of the datasets, with some, or with none."""
    store = Store(tmp_path)
    digits = store.images("digits", "lite0", "all")
    for part in ("all",) if whole else ("pool", "test"):
        ids = [f"{part}/{one}" for one in digits.ids]
        store.write_images("clipart-to-emoji", "lite0", part, digits.X, digits.y, ids, digits.manifest.classes)
    for tier in tiers:
        text = np.array(store.text("digits", "lite0", "photo").prototypes)
        store.write_text("clipart-to-emoji", "lite0", tier, text, None, digits.manifest.classes)
    found = load_in_python(tmp_path)
    assert found.classes == digits.manifest.classes
    assert found.tiers == sorted(tiers)


def test_features_in_memory_under_the_name_of_a_shift_stay():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 12)
    X = np.eye(3, 16)[y] + 0.1 * rng.normal(size=(36, 16))
    made = kshot.Features.from_arrays("clipart-to-emoji", backbone="lite0", pool=(X, y), test=(X + 0.1, y))
    found = kshot.compare("ncm", made, shots=[2], seeds=1, workers=1, min_residue=0)
    assert found.to_arrow()["n_classes"].to_pylist() == [3]
