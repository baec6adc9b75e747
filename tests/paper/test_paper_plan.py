"""What is planned: the paper's own number of encodings, views of drawn pictures only, a chosen part."""

import json
import platform

import numpy as np
import pytest

from kshot.bench.strata import from_catalog
from kshot.bench.study import load_study
from kshot.data.episode import drawn_rows
from kshot.data.store import Store
from kshot.errors import StudyError
from kshot.paper.features import wanted_features
from kshot.paper.plan import TIMINGS, drawn, encodings, plan_tables
from kshot.paper.reproduce import Selection, arms


def planned(tmp_path, *studies, keep=lambda cell: True):
    wanted = wanted_features(map(load_study, studies), keep)
    return {name: encodings(Store(tmp_path), name, needs) for name, needs in wanted.items()}


def test_the_matrix_has_the_papers_million_and_a_quarter_pairs(tmp_path):
    found = planned(tmp_path, "paper")
    assert sum(own.encodings for own in found.values()) == pytest.approx(1.25e6, rel=0.01)
    assert found["EuroSAT"].pictures == 5400 + 10 * 100
    assert not any(own.views for own in found.values())


def test_every_arm_of_the_paper_has_the_cap_and_our_own_matrix_none():
    assert {load_study(name).pool_cap for name in arms()} == {100}
    assert load_study("paper-ours").pool_cap is None


def test_views_are_planned_of_pictures_that_some_draw_uses(tmp_path):
    draws = load_study("augmentation").draws("DTD")
    ids, y = tuple(f"{n}" for n in range(47 * 40)), np.repeat(np.arange(47), 40)
    for views, own in draws.items():
        truth = len(drawn_rows("DTD", ids, y, 47, own))
        assert drawn(from_catalog("DTD", "RN50", 100), own) == pytest.approx(truth, rel=0.02)
        assert truth < len(ids)
        assert views.count in (10, 20)
    found = planned(tmp_path, "paper", "augmentation", keep=lambda cell: cell.dataset == "DTD")["DTD"]
    assert found.views == 5 * 20 * drawn(from_catalog("DTD", "RN50", 100), own)


def test_a_plan_of_the_small_one_needs_no_torch_the_second_time(tmp_path, monkeypatch):
    kept = {f"{platform.node()}, cpu": {"gmacs_per_second": 44.0, "device": "this core"}}
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / TIMINGS).write_text(json.dumps(kept))
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    small = Selection(["paper"], ("DTD", "EuroSAT", "Pets"), ("ViT-B-16",))
    features, cells = plan_tables(tmp_path / "features", tmp_path / "records", small, 2, "cpu")
    assert features.rows[-1][:6] == ("all", "2.7 GB", "16,773", "16,773", "0", "1.9 h")
    assert cells.rows[0][:2] == ("paper", "0 of 50")
    assert [number.mean for number in cells.rows[0][2:4]] == [2925, 0]


def test_a_study_file_with_a_wrong_cap(tmp_path):
    (tmp_path / "s.toml").write_text('name = "s"\npool_cap = 0\n')
    with pytest.raises(StudyError, match="'pool_cap' must be a whole number from 1 up, not 0"):
        load_study(tmp_path / "s.toml")
