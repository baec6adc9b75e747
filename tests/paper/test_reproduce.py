"""One command computes every arm, goes on where it was stopped, and says what the paper would have said."""

import pyarrow.compute as pc
import pytest

from kshot.bench.records import PROBES, Records
from kshot.data.store import Store
from kshot.paper.rehearsal import WORLDS, write_stratum
from kshot.paper.reproduce import Reproduction, Selection

pytestmark = pytest.mark.ci

SMALL = """
name = "NAME"
datasets = ["DTD", "Pets"]
backbones = ["ViT-B-16"]
tiers = ["dataset"]
shots = [1, 2]
seeds = [0]
methods = ["zero_shot", "oracle_lambda", "loo_blend", "gda_alpha1"]
"""
VIEWS = SMALL.replace("tiers =", 'views = { recipe = "tip", count = 2 }\ntiers =')


@pytest.fixture
def features(tmp_path, monkeypatch):
    """Two arms of the paper cut small, on generated numbers."""
    store = Store(tmp_path / "features")
    for name in ("DTD", "Pets"):
        write_stratum(store, WORLDS[name], "ViT-B-16", {"tip": 2})
    (tmp_path / "small/paper/studies").mkdir(parents=True)
    for name, content in (("paper", SMALL), ("augmentation", VIEWS)):
        (tmp_path / "small/paper/studies" / f"{name}.toml").write_text(content.replace("NAME", name))
    monkeypatch.setattr("kshot.bench.study.PACKAGE", tmp_path / "small")
    # Of the paper's studies these two are there.
    monkeypatch.setattr("kshot.paper.judge.paper_recipes", dict)
    return store.root


def test_reproduction_goes_on_where_it_was_stopped(features, tmp_path):
    arms = ["paper", "augmentation"]
    records = tmp_path / "records"
    words = Reproduction(features, records, Selection(arms)).run()
    assert "paper: 2 of 2 pairs computed" in words
    assert any("simulated" in sentence.lower() for sentence in words)
    for arm in arms:
        assert (records / "reports" / arm / "report.html").is_file()
    table = (records / "reports" / "augmentation" / "tables" / "augmentation.csv").read_text()
    assert "tip × 2" in table
    cache = Records(records)
    assert cache.has("paper" + PROBES)
    assert (records / "published.csv").is_file()

    asked = cache.saved("augmentation").table
    lost = set(asked.filter(pc.equal(asked["dataset"], "DTD"))["key"].to_pylist()) - {""}
    assert cache.drop(lost) == len(lost) > 0
    kept = cache.table(others := cache.keys()).sort_by("key")
    Reproduction(features, records, Selection(["augmentation"])).arms()
    assert lost <= cache.keys()
    assert cache.table(others).sort_by("key").equals(kept), "seconds and all"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--small", "--study", "siglip2"], "no cell of these datasets, backbones and tiers together"),
        (["FOLDER"], "FOLDER is one source for 20 datasets. Put {wds} where their names differ"),
        (["--weights", "ViT-B-16=absent"], "there is no checkpoint at absent"),
        (["--sentences", "cupl=absent"], "there is nothing at absent"),
        (["--dataset", "dtd"], "Did you mean DTD?"),
    ],
    ids=["empty choice", "one source", "weights", "sentences", "letters"],
)
def test_what_cannot_be_reproduced_is_refused_before_anything_runs(kshot, given, says):
    refused = kshot("paper", "reproduce", *given)
    assert refused.returncode == 2
    assert says in refused.stderr
    assert not refused.stdout
