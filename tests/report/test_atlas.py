"""The atlas and the block of transductive heads, on records that a small study makes."""

import json

import numpy as np
import pytest

from kshot import run
from kshot.bench.study import parse_study
from kshot.report.tables import make_table
from kshot.stats.panel import panel

SURVEY = "kshot.methods.knob_survey:KnobSurvey"
STUDY = {
    "name": "small",
    "datasets": ["sim-pets", "sim-satellite"],
    "backbones": ["simulated"],
    "tiers": ["dataset"],
    "shots": [1, 2],
    "seeds": [0],
    "methods": [
        "zero_shot",
        "oracle_lambda",
        "clap",
        "ss_text_plus",
        "transclip_aligned",
        {"as": "blend", "use": SURVEY, "method": "loo_blend"},
        {"as": "ridge", "use": SURVEY, "method": "proker", "knob": "ridge"},
        {"as": "gamma", "use": SURVEY, "method": "transclip_aligned"},
    ],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    where = {"features": folder / "features", "records": folder / "records"}
    return run(parse_study(STUDY, "test"), workers=1, **where).panel


def test_the_oracle_of_a_survey_is_the_oracle_method(made):
    assert np.allclose(made.column("blend"), made.column("oracle_lambda"))


def test_transductive_heads_are_ranked_with_nobody(made):
    title = made.titles["transclip_aligned"]
    assert title not in {row[0] for row in make_table("leaderboard", made).rows}
    assert title not in {row[0] for row in make_table("per_dataset", made).rows}
    assert title not in {row[0] for row in make_table("headline", made).rows}
    assert [row[0] for row in make_table("transductive", made).rows] == [title]
    knobs = make_table("knobs", made)
    assert knobs.rule == 2
    assert str(knobs.rows[2][0]).startswith(title)
    assert make_table("fixed_heads", made).rule == 1


def test_a_classifier_that_was_turned_over_is_marked(made):
    records = [row for row in made.records.to_pylist() if row["method"] == "ss_text_plus"]
    flagged = [json.loads(row["selected"])["turned_over"] for row in records]
    marked = [str(row[0]) for row in make_table("leaderboard", made).rows if "SS-Text+" in str(row[0])]
    assert marked[0].endswith("‡") == any(flagged)


def test_a_head_surveyed_on_fewer_cells_does_not_narrow_the_others(made):
    table, whole = made.records, make_table("fixed_heads", made)
    where = zip(table["method"].to_pylist(), table["dataset"].to_pylist(), strict=True)
    narrow = make_table("fixed_heads", panel(table.filter([one != ("ridge", "sim-pets") for one in where])))
    gone = {row[0] for row in whole.rows} - {row[0] for row in narrow.rows}
    assert gone == {"ProKeR"}
    assert "ProKeR" in narrow.caption
    assert [row for row in whole.rows if row[0] not in gone] == list(narrow.rows)
