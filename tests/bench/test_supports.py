"""`--supports`: a study uses the shots that a file names."""

import json
from pathlib import Path

import numpy as np
import pytest

from kshot import load_records, run
from kshot.bench.diff import compare
from kshot.data.store import Store
from kshot.data.stratum import load_stratum
from small_store import CLASSES, write_stratum

STUDY = """
name = "given"
datasets = ["pets"]
backbones = ["mine", "other"]
tiers = ["photo"]
shots = [1, 2]
seeds = [0, 1]
methods = ["zero_shot", "ncm", "loo_blend", "gda_alpha_val", "clap"]
"""
POOL = 12


@pytest.fixture
def store(folder):
    (folder / "given.toml").write_text(STUDY)
    found = Store(folder / "features")
    for backbone in ("mine", "other"):
        write_stratum(found, "pets", backbone, {"pool": POOL, "test": 40}, noise=2.0)
    return found


def shots(draw):
    """{dataset: {K: {seed: pictures}}} from a function of K and seed."""
    return {"pets": {str(k): {str(seed): draw(k, seed) for seed in (0, 1)} for k in (1, 2)}}


def first_rows(k, seed):
    """Row numbers: the last pictures of every class."""
    return [3 * (POOL - 1 - seed - i) + c for c in range(3) for i in range(k)]


def records(name, given=None):
    Path(f"{name}.json").write_text(json.dumps(given))
    results = run("given.toml", records=name, workers=1, supports=f"{name}.json" if given else None)
    return results.records.drop_columns(["fit_seconds", "score_seconds"])


def test_the_draws_of_kshot_itself_give_its_own_records_to_the_bit(store):
    stratum = load_stratum(store, "pets", "mine")

    def drawn(k, seed):
        return [stratum.pool_ids[row] for row in stratum._drawn(k, seed, "balanced")]

    plain, first, second = records("plain"), records("first", shots(drawn)), records("second", shots(drawn))
    assert first.equals(second)
    assert first.drop_columns(["key"]).equals(plain.drop_columns(["key"]))
    assert compare(plain, second).same


def test_given_shots_are_those_that_a_head_learns_from(store):
    rows = records("numbers", shots(first_rows)).to_pylist()
    by_class = shots(
        lambda k, s: {c: [f"pool/{r}" for r in first_rows(k, s) if r % 3 == n] for n, c in enumerate(CLASSES)}
    )
    assert rows == records("names", by_class).to_pylist()
    pool, test = (store.images("pets", "other", part) for part in ("pool", "test"))
    for row in (row for row in rows if row["method"] == "ncm" and row["backbone"] == "other"):
        chosen = first_rows(row["shots"], row["seed"])
        means = np.stack([np.mean([pool.X[r] for r in chosen if pool.y[r] == c], axis=0) for c in range(3)])
        scores = test.X @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
        assert row["accuracy"] == np.mean(scores.argmax(axis=1) == test.y)
    kept = load_records("numbers").saved.study
    assert list(kept.supports_of("pets")[2, 1]) == [f"pool/{r}" for r in first_rows(2, 1)]
