"""The plane of the prototypes against scikit-learn's PCA."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from kshot.data import simulated
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.theory.probes.sketch import MOST_CLASSES, sketches

STRATA = [("sim-satellite", "simulated", "dataset"), ("sim-aircraft", "simulated", "dataset")]


def test_sketch_is_the_pca_of_means_and_text(tmp_path):
    store = Store(tmp_path)
    simulated.write(simulated.WORLDS["sim-satellite"], store)
    (found,) = sketches(store, STRATA, [1, 4], 3)
    stratum = load_stratum(store, "sim-satellite", "simulated")
    text = load_prior(store, "sim-satellite", "simulated", "dataset").text
    means = np.stack([stratum.pool.X[stratum.pool.y == c].mean(axis=0) for c in range(stratum.n_classes)])
    theirs = PCA(2).fit(np.concatenate([means, text]).astype(float))
    flat = theirs.transform(np.concatenate([means, text]).astype(float))
    ours = np.concatenate([found.image, found.text])
    np.testing.assert_allclose(np.abs(ours), np.abs(flat), atol=1e-5)
    assert found.explained == pytest.approx(theirs.explained_variance_ratio_.sum(), rel=1e-4)
    support = stratum.episode(4, 3, None).reveal(frozenset({"support"})).support
    shot_means = np.stack([support.X[support.y == c].mean(axis=0) for c in range(stratum.n_classes)])
    np.testing.assert_allclose(np.abs(found.support[4]), np.abs(theirs.transform(shot_means.astype(float))), atol=1e-5)
    assert (found.seed, found.classes, len(found.names)) == (3, stratum.n_classes, stratum.n_classes)


def test_many_classes_are_thinned_and_absent_features_skipped(tmp_path):
    store = Store(tmp_path)
    simulated.write(simulated.WORLDS["sim-aircraft"], store)
    (found,) = sketches(store, STRATA, [1, 4], 3)
    assert found.dataset == "sim-aircraft"
    assert len(found.names) == len(found.text) == MOST_CLASSES < found.classes
    assert list(sketches(Store(tmp_path / "empty"), STRATA, [1, 4], 3)) == []
