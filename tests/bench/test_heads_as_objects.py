"""`kshot.compare`: heads as objects, features from arrays, on all cores; the same hits as by name and folder."""

import gc
import logging
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import kshot
from kshot.bench.heads import method_specs
from kshot.bench.knobs import made
from kshot.bench.study import parse_study
from kshot.errors import KshotError, StudyError
from kshot.extend import Classifier, MethodInfo, blend
from kshot.methods.ncm import NCM

SEES = frozenset({"text", "support"})
HEADS = ["zero_shot", kshot.NCM(), kshot.LOOBlend(), kshot.GDA(alpha="loo")]
BY_NAME = ["zero_shot", "ncm", "loo_blend", "gda_alpha_loo"]


def own_class(share_of_pictures=0.5):
    """A class that no process can import."""

    class Half(Classifier):
        info = MethodInfo(key="half", title="Half and half", sees=SEES, min_shots=1)
        share: float = 0.5

        def _fit(self, task):
            self._set_linear(blend(task.means, task.text, share_of_pictures * self.share))

    return Half


@pytest.fixture(scope="module")
def stored():
    return kshot.load_features("tuxpaint", "lite0")


@pytest.fixture(scope="module")
def features(stored):
    """The rows as their file holds them, in memory."""
    whole = stored.store.images("tuxpaint", "lite0", "all")
    row = {name: number for number, name in enumerate(whole.ids)}
    ids = stored.stratum.pool_ids, stored.stratum.test_ids
    places = [[row[name] for name in part] for part in ids]
    pool, test = ((whole.X[part], whole.y[part]) for part in places)
    text = {tier: stored.store.text("tuxpaint", "lite0", tier).prototypes for tier in stored.tiers}
    known = {"logit_scale": stored.stratum.logit_scale}
    return kshot.Features.from_arrays("tuxpaint", pool=pool, test=test, text=text, ids=ids, constants=known)


def hits(folder_or_results):
    rows = folder_or_results.to_arrow().to_pylist()
    return {(row["tier"], row["shots"], row["seed"], row["method"]): row["hits"] for row in rows}


def test_the_same_hits_as_a_run_by_name_of_the_stored_features(features, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grid = {"datasets": ["tuxpaint"], "backbones": ["lite0"], "tiers": ["dataset", "photo"], "shots": [1, 3]}
    study = parse_study({"name": "s", **grid, "seeds": [0, 1], "methods": BY_NAME}, "s")
    named = hits(kshot.run(study, workers=1))
    two = kshot.compare(HEADS, features, shots=[1, 3], seeds=2, tiers=["dataset", "photo"], workers=2)
    assert hits(two) == named
    one = kshot.compare(HEADS, "tuxpaint/lite0/photo", shots=[1, 3], seeds=[0, 1], workers=1)
    assert hits(one) == {key: value for key, value in named.items() if key[0] == "photo"}
    assert not [path for path in tmp_path.iterdir() if path.name != "records"]
    on = kshot.run(replace(study, name="other"), on=features, records="on", workers=2)
    assert {key: value for key, value in hits(on).items() if key[0] != "ensemble"} == named


def test_a_class_of_the_session_on_two_processes(features, stored):
    Half = own_class()
    results = kshot.compare([Half(), Half(share=1), "clap"], features, shots=[2], seeds=2, tiers=["photo"], workers=2)
    frame = results.to_pandas()
    assert set(frame.method) == {"half", "half(share=1)", "clap"}
    assert set(frame.title) == {"Half and half", "Half and half (share=1)", "CLAP"}
    for share, name in ((0.5, "half"), (1, "half(share=1)")):
        for seed in range(2):
            episode = stored.episode(2, seed, "photo")
            support, text = episode.reveal(SEES).support, stored.text["photo"]
            means = np.stack([support.X[support.y == c].mean(axis=0) for c in range(8)])
            # 0.5 of the class times its share: prototypes (1 − r)·text + r·means.
            rows = 0.5 * share * means + (1 - 0.5 * share) * text
            right = (episode.queries @ (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T).argmax(1)
            expected = np.mean(right == stored.test.y)
            found = frame[(frame.method == name) & (frame.seed == seed)].accuracy.item()
            assert found == pytest.approx(expected, abs=0.01)
    assert results.paired("half", "clap").n == 2
    assert "Half and half" in repr(results.leaderboard())
    assert "Half and half" in results.table("leaderboard").latex()


def test_records_of_no_folder_end_with_the_results_and_a_report_needs_one(features):
    results = kshot.compare(["ncm"], features, shots=[1], seeds=1, tiers=["photo"], workers=1)
    folder = results.cache.folder
    part = results.where(shots=1)
    del results
    gc.collect()
    assert folder.is_dir()
    with pytest.raises(StudyError, match=r"Give one: report\('report'\)"):
        part.report()
    del part
    gc.collect()
    assert not folder.exists()


def test_names_tell_heads_apart():
    Half, Other = own_class(), own_class(0.2)
    given = [kshot.CLAP(), "clap", kshot.CLAP(seed=1), kshot.TipAdapter(tune="loo"), Half, Half(), Other(), NCM()]
    specs = method_specs(given)
    assert [spec.name for spec in specs] == ["clap", "clap(seed=1)", "tip_adapter_loo", "half", "half 2", "ncm"]
    assert [spec.title for spec in specs][3:5] == ["Half and half", "Half and half 2"]
    assert (specs[1].use, specs[1].params, specs[1].title) == ("clap", {"seed": 1}, "CLAP (seed=1)")
    assert [spec.name for spec in method_specs({"mine": Half(), "theirs": kshot.CLAP()})] == ["mine", "theirs"]
    assert made(specs[4]).get_params() == {"share": 0.5}


def test_a_changed_class_is_computed_again_and_an_unchanged_one_is_not(features, tmp_path, caplog):
    def compared(cls):
        options = {"shots": [2], "seeds": 2, "tiers": ["photo"], "workers": 1, "records": tmp_path / "r"}
        with caplog.at_level(logging.INFO):
            caplog.clear()
            return hits(kshot.compare([cls(), "ncm"], features, **options)), caplog.text

    first, _ = compared(own_class())
    again, said = compared(own_class())
    assert again == first
    assert "4 records there, 0 to compute" in said
    changed, said = compared(own_class(0.1))
    assert "2 records there, 2 to compute" in said
    assert changed != first
    assert {k: v for k, v in changed.items() if k[3] == "ncm"} == {k: v for k, v in first.items() if k[3] == "ncm"}


class Dies(NCM):
    """Takes its process with it."""

    def _fit(self, task):
        import os

        os._exit(3)


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_own_records_only(features, caplog):
    fatal = type("Fatal", (Dies,), {})
    results = kshot.compare([fatal(), "zero_shot"], features, shots=[1], seeds=3, tiers=["photo"], workers=2)
    assert "not finished: 3 of 6 records are missing" in caplog.text
    assert results.records["method"].to_pylist() == ["zero_shot"] * 3
    assert sum(row[-1] == "not computed" for row in results.missing) == 3


class Remembering(Classifier):
    """A head with state of its own in the class, and without defaults for every parameter."""

    info = MethodInfo(key="ncm", title="Not kshot's", sees=SEES, min_shots=1)
    seen: ClassVar[list] = []

    def __init__(self, shift):
        self.shift = shift

    def _fit(self, task):
        self.seen.append(task.y)
        self._set_linear(task.means + self.shift * len(self.seen[1:]))


def test_a_head_that_takes_arguments_under_a_name_of_kshot(features):
    head, options = (Remembering(shift=np.eye(1280)[0]), {"shots": [2], "tiers": ["photo"], "workers": 2})
    together = hits(kshot.compare([head, "ncm"], features, seeds=3, **options))
    alone = [hits(kshot.compare([head], features, seeds=[seed], **options)) for seed in range(3)]
    own = {key: value for key, value in together.items() if key[3] != "ncm"}
    assert own == {key: value for found in alone for key, value in found.items()}, "no cell sees what another kept"
    assert next(iter(own))[3].startswith("Remembering(shift=")


def test_a_cache_of_exactly_k_pictures(stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = stored.pool
    rows = np.concatenate([np.flatnonzero(y == c)[:16] for c in range(8)])
    cache = kshot.Features.from_arrays("cache", pool=(X[rows], y[rows]), test=stored.test, text=stored.text["photo"])
    cache.save("features")
    axes = {"datasets": ["cache"], "backbones": ["arrays"], "tiers": ["text"], "shots": [8, 14, 16], "seeds": [0]}
    needy = parse_study({"name": "needy", **axes, "methods": ["ncm", "mse_oracle"]}, "s")
    for results in (
        kshot.run(needy, workers=1),
        kshot.compare(["ncm", "mse_oracle"], cache, shots=[8, 14, 16], seeds=1),
    ):
        rows = results.to_arrow().to_pylist()
        defined = {(row["shots"], row["method"]) for row in rows if row["status"] == "ok"}
        assert defined == {(8, "ncm"), (14, "ncm"), (16, "ncm"), (8, "mse_oracle")}


def test_numbers_of_numpy_are_numbers(features):
    found = kshot.compare("ncm", features, shots=np.int64(2), seeds=np.int64(2), workers=1)
    assert set(found.where(shots=np.int64(2)).to_arrow()["seed"].to_pylist()) == {0, 1}


def test_what_cannot_be_compared_is_an_error(features):
    for heads, options, says in (
        ([], {}, "at least one head"),
        (["ncm"], {"shots": []}, "one K in shots and one seed"),
        (["ncm"], {"shots": [0]}, r"'shots' must be whole numbers from 1 up to \d+, not \[0\]"),
        (["ncm"], {"shots": 1000}, "no record can be computed: a class has too few pool pictures"),
        (["ncm"], {"seeds": [-1]}, "'seeds' must be whole numbers from 0"),
        (["ncm"], {"tiers": "nosuch"}, "no features have tier nosuch"),
        (["ncm"], {"workers": 0}, "workers must be a whole number from 1 up, not 0"),
    ):
        with pytest.raises(KshotError, match=says):
            kshot.compare(heads, features, **options)


class Exits(NCM):
    """Ends its process in a way that Python lets pass."""

    info = replace(NCM.info, key="exits")

    def _fit(self, task):
        raise SystemExit(3)


@pytest.mark.parametrize("workers", [1, 2])
def test_failures_and_left_out_cells_are_told(features, workers, caplog):
    heads = [type("Held", (Exits,), {})(), "ncm", "mse_oracle"]
    results = kshot.compare(heads, features, shots=[1, 30], seeds=2, tiers="photo", workers=workers)
    assert set(results.to_pandas().shots) == {1}
    assert "exits failed in 2 cells: SystemExit: 3" in caplog.text
