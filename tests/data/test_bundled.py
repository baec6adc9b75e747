"""What comes with the package: real features, found without setup."""

import numpy as np
import pytest

from kshot.bench.study import load_study
from kshot.data.catalog import datasets
from kshot.data.episode import too_thin
from kshot.data.gate import check_stratum
from kshot.data.store import BUNDLED, Store
from kshot.data.stratum import load_prior, load_stratum, pool_rows

STRATA = sorted({(path.parts[-3], path.parts[-2]) for path in BUNDLED.glob("*/*/*.json")})


def test_six_sets_within_sixteen_megabytes():
    assert len({dataset for dataset, _ in STRATA}) >= 6
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) <= 16e6


@pytest.mark.parametrize(("dataset", "backbone"), STRATA)
def test_each_passes_every_check(tmp_path, dataset, backbone):
    store = Store(tmp_path)
    findings = list(check_stratum(store, dataset, backbone))
    assert all(finding.passed for finding in findings), findings
    assert store.tiers(dataset, backbone) == ["dataset", "ensemble", "photo"]
    for manifest in store.bundled():
        assert manifest.dtype == "float16"
        assert not manifest.simulated
        assert manifest.licence == datasets()[manifest.dataset].licence
        assert datasets()[manifest.dataset].pictures_sha256 in manifest.source
        assert "not CLIP" in manifest.encoder["name"]


def test_sixteen_shots_are_defined_on_at_least_five(tmp_path):
    thick = [stratum for stratum in STRATA if not too_thin(*pool_rows(Store(tmp_path), *stratum).drawable()[1:], 16)]
    assert len(thick) >= 5


def test_the_prior_goes_from_strong_to_useless(tmp_path):
    """The best share of the test set that no shots at all get right, as multiples of guessing."""
    times_chance = {}
    for dataset, backbone in STRATA:
        stratum = load_stratum(Store(tmp_path), dataset, backbone)
        text = load_prior(Store(tmp_path), dataset, backbone, "dataset").text
        right = np.mean((stratum.test.X @ text.T).argmax(axis=1) == stratum.test.y)
        times_chance[dataset] = right * stratum.n_classes
    assert times_chance["cifar10"] > 5.5
    assert times_chance["digits"] < 1.5


def test_own_features_replace_bundled_ones(tmp_path):
    store = Store(tmp_path)
    assert store.has("digits", "lite0", "all")
    X = np.eye(2, dtype=np.float32)
    store.write_images("digits", "lite0", "all", X, np.array([0, 1]), ["a", "b"], ["x", "y"])
    assert store.images("digits", "lite0", "all").ids == ("a", "b")
    assert store.tiers("digits", "lite0") == []
    assert "digits" not in {manifest.dataset for manifest in store.bundled()}
    assert "cifar10" in {manifest.dataset for manifest in store.bundled()}


def test_the_embedded_study_is_real_and_large_enough():
    study = load_study("embedded")
    cells = study.cells()
    assert len({cell.dataset for cell in cells}) >= 6
    assert {(cell.dataset, cell.backbone) for cell in cells} <= set(STRATA)
    assert {cell.shots for cell in cells} == {1, 2, 4, 8, 16}
    assert len({cell.seed for cell in cells}) == 5
    assert len(study.methods()) >= 8
