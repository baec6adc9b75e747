"""The published heads on real CLIP features, against figures measured elsewhere."""

import numpy as np
import pytest

from kshot.methods import registry
from stanford_cars import accuracy, mean_accuracy


def test_gda_at_sixteen_shots(cars):
    assert accuracy(cars, "gda_alpha1", 16) == pytest.approx(77.9, abs=1.5)


def test_clap_at_one_shot(cars):
    assert accuracy(cars, "clap", 1) == pytest.approx(62.0, abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), [("clap", 75.6), ("lpp", 76.5)])
def test_probes_at_sixteen_shots(cars, name, expected):
    assert accuracy(cars, name, 16) == pytest.approx(expected, abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize(("shots", "margin"), [(2, -1.5), (4, -1.5), (16, 2.0)])
def test_hoso_against_the_loo_blend(cars, shots, margin):
    assert mean_accuracy(cars, "hoso", shots) >= mean_accuracy(cars, "loo_blend", shots, seeded=False) + margin


# ../shared/real/README.md: means over three draws, which take the first K of numpy's permutation of each class.
HEADS = ("zero_shot", "ncm", "js_blend", "loo_blend", "gda_alpha1", "gda_alpha_loo", "clap", "lpp", "fold_gda")
TRAINED = ("clap", "lpp", "fold_gda")
MEASURED = {
    ("caltech101", 2): (94.2, 87.8, 88.8, 94.6, 90.3, 91.9, 95.5, 95.3, 95.4),
    ("caltech101", 8): (94.2, 92.9, 93.1, 95.5, 94.9, 94.8, 95.9, 96.0, 95.4),
    ("fgvc_aircraft", 2): (28.9, 26.9, 27.6, 32.3, 29.4, 30.2, 35.8, 34.7, 34.7),
    ("fgvc_aircraft", 8): (28.9, 38.5, 38.8, 40.1, 44.4, 44.4, 43.3, 43.4, 45.0),
    ("food101", 2): (88.0, 65.6, 69.2, 88.0, 72.6, 74.5, 86.9, 86.5, 88.0),
    ("food101", 4): (88.0, 75.7, 76.5, 88.2, 81.1, 79.8, 87.7, 87.9, 88.2),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in TRAINED else name for name in HEADS]
)
@pytest.mark.parametrize(("dataset", "shots"), MEASURED)
def test_the_same_draws_give_the_same_figures(real, dataset, shots, name):
    expected = MEASURED[dataset, shots][HEADS.index(name)]
    with np.load(real / f"{dataset}_vitb16.npz") as file:
        X, test, T = (file[key].astype(np.float32) for key in ("train_x", "test_x", "text"))
        y, truth = file["train_y"], file["test_y"]
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        drawn = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:shots] for c in np.unique(y)])
        head = registry.create(name).fit(X[drawn], y[drawn], text=T)
        found.append(100 * head.score(test, truth))
    assert np.mean(found) == pytest.approx(expected, abs=0.2)
