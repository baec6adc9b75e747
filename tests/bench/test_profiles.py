"""Uneven and missing shots as an axis of a study; balanced cells stay what they were."""

from itertools import pairwise

import numpy as np
import pyarrow.compute as pc
import pytest

from folders import comparable, edit, fill, missing, table
from kshot import load_records
from kshot.bench.cell import asked_head
from kshot.bench.records import Records
from kshot.bench.study import load_study
from kshot.data.episode import class_shots
from kshot.data.features import load_features
from kshot.data.stratum import Prior
from kshot.methods import registry
from kshot.types import HALVES, PROFILES

ALL = 'profiles = ["balanced", "long-tailed", "collected", "missing"]'


@pytest.fixture
def uneven(records, folder):
    """The small study on sim-pets under every profile, beside the plain one."""
    edit("small.toml", "shots = [1, 2]\nseeds = [0, 1, 2]", f"shots = [4]\nseeds = [0, 1]\n{ALL}", to="uneven.toml")
    found = Records(folder / "uneven")
    fill(load_study("uneven.toml"), folder / "features", found)
    return found


def test_counts_are_nested():
    y = np.repeat(np.arange(20), np.arange(20, 120, 5))
    for profile in PROFILES:
        counts = [class_shots(profile, "d", y, 20, k, 3) for k in (1, 2, 4, 8, 16)]
        assert all((low <= high).all() for low, high in pairwise(counts))


def test_uneven_supports_are_part_of_the_balanced_ones(records, folder):
    stratum = load_features("sim-pets", "simulated", features=folder / "features").stratum
    whole = stratum.episode(4, 0, None).reveal(frozenset({"support"})).support
    for profile in ("long-tailed", "missing"):
        part = stratum.episode(4, 0, None, profile)
        shots = part.reveal(frozenset({"support"})).support
        rows = {row.tobytes() for row in whole.X}
        assert len(shots.y) < len(whole.y)
        assert all(row.tobytes() in rows for row in shots.X)


def test_a_run_under_every_profile(uneven, folder):
    rows = table(uneven.folder).to_pylist()
    status = {(row["profile"], row["method"]): row["status"] for row in rows}
    assert status["missing", "zero_shot"] == "ok"
    assert status["missing", "ncm"] == "undefined"
    assert status["long-tailed", "ncm"] == "ok"
    assert status["long-tailed", "loo_blend"] == "undefined"
    assert all(np.isfinite(row["d2"]) for row in rows)
    reasons = {row["reason"] for row in rows if (row["method"], row["status"]) == ("ncm", "undefined")}
    assert all("ncm reads no text that could stand in" in reason for reason in reasons)
    zero_shot = {r["profile"]: r["hits"] for r in rows if r["method"] == "zero_shot"}
    assert len(set(zero_shot.values())) <= 2  # one per dataset: the profile changes nothing for text alone


def test_the_table_by_profile_pairs_the_same_draws(uneven):
    found = load_records(uneven.folder)
    table = found.table("profiles")
    assert table.columns[1:5] == tuple(PROFILES)
    texts = {row[0]: row for row in table.texts()}
    assert texts["Zero-shot"][5].startswith("+0.00 [")
    assert texts["NCM"][4] == "–"
    panel = found.panel
    ncm, tail = panel.column("ncm"), panel.profile == "long-tailed"
    expected = ncm[tail].mean() - ncm[panel.profile == "balanced"].mean()
    assert next(row for row in table.rows if row[0] == "NCM")[5].mean == pytest.approx(expected)
    assert set(found.leaderboard().to_arrow().column_names) >= {"method", "k4"}


def test_classes_without_shots_have_a_table_and_metrics_of_their_own(uneven):
    found = load_records(uneven.folder)
    means = {row[0]: [float(value) for value in row[1:4]] for row in found.table("unseen").rows}
    rows = table(uneven.folder).filter(pc.field("profile") == "missing")
    rows, truth = rows.filter(pc.field("method") == "zero_shot"), []

    def shares(answers):
        unseen = answers.unseen[answers.truth]
        assert 0 < unseen.mean() < 1
        truth.append((100 * answers.hits[~unseen].mean(), 100 * answers.hits[unseen].mean()))
        return 0.0

    uneven.answers(rows, {"shares": shares})
    assert means["Zero-shot"][:2] == pytest.approx(np.mean(truth, axis=0))
    texts = {row[0]: row for row in found.table("unseen").texts()}
    assert texts["Zero-shot"][4].startswith("+0.00 [")
    assert texts["NCM"][2] == "–"
    assert np.isnan(found.by("unseen").measured.column("zero_shot")).sum() == 3 * len(truth)


@pytest.fixture
def halves(records, folder):
    """The small study from base to new."""
    edit(
        "small.toml",
        "shots = [1, 2]\nseeds = [0, 1, 2]",
        'shots = [4]\nseeds = [0, 1]\nprofiles = ["base", "new"]',
        to="halves.toml",
    )
    found = Records(folder / "halves")
    fill(load_study("halves.toml"), folder / "features", found)
    return found


def episode_of(stratum, profile, text):
    return stratum.episode(4, 0, Prior(text), profile)


def test_base_and_new_halve_the_classes_and_share_their_shots(records, folder):
    features = load_features("sim-pets", "simulated", features=folder / "features")
    stratum, text = features.stratum, next(iter(features.text.values()))
    base, new = (episode_of(stratum, profile, text) for profile in HALVES)
    middle = -(-stratum.n_classes // 2)
    shots = [part.reveal(frozenset({"support"})).support for part in (base, new)]
    assert np.array_equal(shots[0].X, shots[1].X)
    assert np.unique(shots[0].y).tolist() == list(range(middle))
    assert base.n_test + new.n_test == len(stratum.test.y)
    labels = new.reveal(frozenset({"test"})).test.y
    expected = stratum.test.y[stratum.test.y >= middle] - middle
    assert np.array_equal(np.sort(labels), np.sort(expected))


def test_either_half_is_answered_as_if_the_other_were_not_there(records, folder):
    features = load_features("sim-pets", "simulated", features=folder / "features")
    stratum, text = features.stratum, next(iter(features.text.values()))
    for episode, half in zip(
        (episode_of(stratum, p, text) for p in HALVES), (slice(0, 19), slice(19, 37)), strict=True
    ):
        truth = episode.reveal(frozenset({"test"})).test.y
        zero_shot = asked_head(episode.fit(registry.create("zero_shot")), episode)
        expected = (episode.queries @ text[half].T).argmax(axis=1)
        assert np.array_equal(zero_shot.predict(episode.queries), expected)
        assert zero_shot.predict_proba(episode.queries).shape == (len(truth), half.stop - half.start)
    base = episode_of(stratum, "base", text)
    shots = base.reveal(frozenset({"support"})).support
    alone = registry.create("gda_alpha1").fit(shots.X, shots.y, text=text[:19])
    within = asked_head(base.fit(registry.create("gda_alpha1")), base)
    assert np.allclose(within.scores(base.queries), alone.scores(base.queries), rtol=1e-4, atol=1e-3)


def test_a_run_from_base_to_new(halves):
    rows = table(halves.folder).to_pylist()
    status = {(row["profile"], row["method"]): row for row in rows}
    for half in HALVES:
        assert status[half, "zero_shot"]["status"] == "ok"
        assert status[half, "ncm"]["status"] == "undefined"
    assert {row["n_classes"] for row in rows if (row["dataset"], row["profile"]) == ("sim-pets", "new")} <= {18}
    accuracy = [row["accuracy"] for row in rows if (row["profile"], row["method"]) == ("new", "zero_shot")]
    board = load_records(halves.folder).where(profile="new").leaderboard().to_pandas().set_index("method")
    assert board.loc["Zero-shot", "mean"] == pytest.approx(100 * np.mean(accuracy))
    assert np.isnan(board.loc["NCM", "mean"])


def test_balanced_cells_are_those_of_a_study_without_profiles(records, folder):
    edit("small.toml", "seeds", 'profiles = ["balanced", "missing"]\nseeds', to="more.toml")
    before = comparable(records.folder).to_pylist()
    fill(load_study("more.toml"), folder / "features", records)
    after = comparable(records.folder).to_pylist()
    assert [row for row in after if row["profile"] == "balanced"] == before
    assert missing(records.folder) == 0
