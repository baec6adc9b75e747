"""What a method is told of encoder and dataset before it sees a picture."""

from dataclasses import replace

import numpy as np
import pytest

from kshot import TipAdapter, TipAdapterF
from kshot.bench.cell import use_known_constants
from kshot.bench.judged import knob_oracle
from kshot.bench.study import Cell, MethodSpec, parse_study
from kshot.data.catalog import datasets
from kshot.data.store import Store
from kshot.data.stratum import load_stratum

CLASSES = ("one", "two", "three")
# (beta, alpha) of the official search, as METHODS.md lists them.
OFFICIAL = {
    "Caltech101": (12, 5), "DTD": (13, 13), "EuroSAT": (12, 10), "Aircraft": (30, 30), "Food101": (10, 10),
    "ImageNet": (7, 3), "Flowers102": (50, 50), "Pets": (7, 3), "Cars": (20, 10), "SUN397": (12, 10),
    "UCF101": (7, 3), "my-own": (12, 10),
}  # fmt: skip

# What Tip-Adapter-F is trained with, as METHODS-FIELD.md lists it: alpha, and 20 epochs but on one set.
TRAINED_WITH = {
    "Caltech101": 3, "DTD": 2, "EuroSAT": 2, "Aircraft": 5, "Food101": 1.17, "ImageNet": 1.17, "Flowers102": 10,
    "Pets": 1.17, "Cars": 3, "SUN397": 1.17, "UCF101": 3, "my-own": 1.17,
}  # fmt: skip


def write_stratum(store: Store, dataset: str, **about) -> None:
    rng = np.random.default_rng(0)
    text = rng.normal(size=(3, 8))
    y = np.tile(np.arange(3), 20)
    for part in ("pool", "test"):
        X = (text[y] + 2 * rng.normal(size=(60, 8))).astype(np.float32)
        ids = [f"{part}/{row}" for row in range(60)]
        store.write_images(dataset, "enc", part, X, y, ids, CLASSES, **about)
    store.write_text(dataset, "enc", "photo", text.astype(np.float32), None, CLASSES, **about)


@pytest.fixture
def stratum(tmp_path):
    write_stratum(Store(tmp_path), "any")
    return load_stratum(Store(tmp_path), "any", "enc")


def told(method: TipAdapter | TipAdapterF, stratum, **params) -> tuple[float, float]:
    use_known_constants(method, MethodSpec("tip", "tip", params), stratum, None)
    return method.beta_scale, method.alpha_scale


def test_test_tuned_tip_adapter_searches_as_far_as_the_official_code(stratum):
    for name, search in OFFICIAL.items():
        assert told(TipAdapter(tune="test"), replace(stratum, dataset=name)) == search
    assert {name for name, entry in datasets().items() if entry.tip_search} == OFFICIAL.keys() - {"my-own"}


def test_ranges_chosen_with_test_labels_reach_no_free_method(stratum):
    assert told(TipAdapter(tune="loo"), replace(stratum, dataset="Aircraft")) == (12, 10)


def test_test_tuned_tip_adapter_f_is_trained_as_in_the_official_code(stratum):
    for name, alpha in TRAINED_WITH.items():
        official, free = TipAdapterF(tune="test"), TipAdapterF()
        for method in (official, free):
            told(method, replace(stratum, dataset=name))
        assert (official.alpha, official.epochs) == (alpha, 100 if name == "EuroSAT" else 20)
        assert (free.alpha, free.epochs) == (1.17, 20), "constants chosen with test labels reach no free method"


def test_what_the_study_sets_stays(stratum):
    aircraft = replace(stratum, dataset="Aircraft")
    assert told(TipAdapter(tune="test", beta_scale=5.0), aircraft, beta_scale=5.0) == (5, 30)


def test_a_knobs_oracle_does_not_depend_on_the_strata_before(tmp_path):
    store = Store(tmp_path)
    write_stratum(store, "b-without-scale")
    axes = {"backbones": ["enc"], "tiers": ["photo"], "shots": [4], "seeds": [0]}
    study = parse_study({"name": "s", "datasets": ["b-without-scale"], "methods": ["ncm"], **axes}, "here")

    def oracle(*names):
        cells = {Cell(name, "enc", "photo", 4, seed) for name in names for seed in range(5)}
        found = knob_oracle(study, cells, "tip_adapter_loo", store).accuracy
        return [found[Cell("b-without-scale", "enc", "photo", 4, seed)] for seed in range(5)]

    alone = oracle("b-without-scale")
    write_stratum(store, "a-with-scale", logit_scale=1.0)
    assert oracle("a-with-scale", "b-without-scale") == alone
    write_stratum(store, "b-without-scale", logit_scale=1.0)
    assert oracle("b-without-scale") != alone, "the scale must matter for this test to say anything"
