"""What a method is told of encoder and dataset before it sees a picture."""

from dataclasses import replace

import pytest

from kshot import CLAP, NCM, TipAdapter, TipAdapterF
from kshot.bench.cell import run_method
from kshot.bench.knobs import knob_oracle, oracle_accuracies
from kshot.bench.query import query
from kshot.bench.records import Records
from kshot.bench.run import fill
from kshot.bench.study import Cell, MethodSpec, parse_study
from kshot.data.catalog import datasets
from kshot.data.features import load_features
from kshot.data.store import Store
from kshot.data.stratum import load_stratum
from kshot.errors import InputError
from kshot.methods import registry
from kshot.methods.evidence import prepare
from kshot.methods.parameters import known_constants
from kshot.types import Choice
from kshot.workers import Workers
from problems import problem
from small_store import write_stratum

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


PARTS = {"pool": 20, "test": 20}


@pytest.fixture
def stratum(tmp_path):
    return load_stratum(write_stratum(Store(tmp_path), "any", "enc", PARTS), "any", "enc")


def searched(method: TipAdapter, stratum) -> tuple[float, float]:
    """The ends of the grid of (beta, alpha), seen by a task that was prepared as fit prepares it."""
    known = known_constants(method, stratum.episode(2, 0, None).constants(method.info.sees))
    X, y = stratum.pool.X[:6], stratum.pool.y[:6]
    task = prepare(replace(method.info, sees=frozenset({"support"})), 1, X, y, text=None, constants=known)
    betas, alphas = method._grids(task)
    return round(float(betas[-1]), 6), round(float(alphas[-1]), 6)


def test_test_tuned_tip_adapter_searches_as_far_as_the_official_code(stratum):
    for name, (beta, alpha) in OFFICIAL.items():
        own = TipAdapter(tune="test", beta_scale=float(beta), alpha_scale=float(alpha))
        assert searched(TipAdapter(tune="test"), replace(stratum, dataset=name)) == searched(own, stratum)
    assert {name for name, entry in datasets().items() if entry.tip_search} == OFFICIAL.keys() - {"my-own"}


def test_ranges_chosen_with_test_labels_reach_no_free_method(stratum):
    aircraft = replace(stratum, dataset="Aircraft")
    assert searched(TipAdapter(tune="loo"), aircraft) == searched(TipAdapter(tune="loo"), stratum)
    assert searched(TipAdapter(tune="test"), aircraft) != searched(TipAdapter(tune="test"), stratum)


def test_test_tuned_tip_adapter_f_is_trained_as_in_the_official_code(stratum):
    for name, alpha in TRAINED_WITH.items():
        sees = TipAdapterF(tune="test").info.sees
        known = replace(stratum, dataset=name).episode(2, 0, None).constants(sees)
        official = known_constants(TipAdapterF(tune="test"), known)
        free = known_constants(TipAdapterF(), known)
        assert official.get("alpha", 1.17) == alpha
        assert official.get("epochs", 20) == (100 if name == "EuroSAT" else 20)
        assert not {"alpha", "epochs"} & free.keys(), "constants chosen with test labels reach no free method"


def test_what_the_study_sets_stays(stratum):
    aircraft = replace(stratum, dataset="Aircraft")
    own = TipAdapter(tune="test", beta_scale=5.0, alpha_scale=30.0)
    assert searched(TipAdapter(tune="test", beta_scale=5.0), aircraft) == searched(own, stratum)


@pytest.mark.parametrize("dataset", ["tuxpaint", "emoji"])
def test_a_record_and_an_episode_give_the_same_answers(dataset):
    """Every registered head on one cell of a bundled set, by a study's cell and by a stranger's episode."""
    stored = load_features(dataset, "lite0")
    episode = stored.episode(4, 0)
    names = ("zero_shot", "loo_blend", "clap", "taskres", "tip_adapter_loo", "tip_adapter_test", "proker", "fold_gda")
    for name in names:
        spec = MethodSpec(name, name)
        record = run_method(spec, episode)
        head = episode.fit(registry.create(name))
        assert record.accuracy == episode.score(head), name
        assert record.selected_from.get("logit_scale") == head.selected_["logit_scale"].from_ == "encoder"


def test_published_accuracies_of_the_bundled_sets_come_through_an_episode():
    """What the records of docs/open say of these cells."""
    found = {
        (name, key): round(100 * episode.score(episode.fit(registry.create(key))), 1)
        for name, keys in {"tuxpaint": ("clap", "taskres"), "emoji": ("clap",)}.items()
        for episode in [load_features(name, "lite0").episode(4, 0)]
        for key in keys
    }
    assert found == {("tuxpaint", "clap"): 60.5, ("tuxpaint", "taskres"): 61.4, ("emoji", "clap"): 36.5}


def test_bare_arrays_say_that_constants_are_assumed():
    data = problem()
    bare = CLAP(epochs=2).fit(data.X, data.y, text=data.text).selected_
    assert bare["logit_scale"] == Choice(100.0, "assumed")
    assert bare["anchor_scale"] == Choice(10.0, "assumed")
    own = CLAP(epochs=2, logit_scale=70.0).fit(data.X, data.y, text=data.text, constants={"logit_scale": 30.0})
    assert own.selected_["logit_scale"] == Choice(70.0, "fixed")


def test_constants_are_checked():
    data = problem()
    for wrong, says in (({"logitscale": 1.0}, "no 'logitscale'"), ({"logit_scale": -1.0}, "above 0")):
        with pytest.raises(InputError, match=says):
            CLAP().fit(data.X, data.y, text=data.text, constants=wrong)


def test_a_constant_with_a_default_of_its_own_is_refused():
    class Mine(NCM):
        def __init__(self, logit_scale: float = 100.0):
            self.logit_scale = logit_scale

    data = problem()
    with pytest.raises(InputError, match="default must be None"):
        Mine().fit(data.X, data.y)


def test_a_knobs_oracle_does_not_depend_on_the_strata_before(tmp_path):
    store = Store(tmp_path)
    write_stratum(store, "b-without-scale", "enc", PARTS, noise=2.0)
    spec = MethodSpec("tip_adapter_loo", "tip_adapter_loo")
    axes = {"backbones": ["enc"], "tiers": ["photo"], "shots": [4], "seeds": list(range(5)), "methods": [spec.use]}

    def oracle(*names):
        study = parse_study({"name": "s", "datasets": list(names), **axes}, "here").with_methods([knob_oracle(spec)])
        asked, records = query(study, Store(tmp_path)), Records(tmp_path / "records")
        fill(asked, tmp_path, records, Workers(1))
        values = oracle_accuracies(asked, records, spec)
        return [values[Cell("b-without-scale", "enc", "photo", 4, seed)] for seed in range(5)]

    alone = oracle("b-without-scale")
    write_stratum(store, "a-with-scale", "enc", PARTS, noise=2.0, logit_scale=1.0)
    assert oracle("a-with-scale", "b-without-scale") == alone
    write_stratum(store, "b-without-scale", "enc", PARTS, noise=2.0, logit_scale=1.0)
    assert oracle("b-without-scale") != alone, "the scale must matter for this test to say anything"
