"""The paper's three findings in the kept records of real CLIP features: which intervals over datasets exclude zero."""

from pathlib import Path

import pytest

from kshot.results import load_records

pytestmark = pytest.mark.ci

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "clip" / "records"
ORACLE = "oracle_lambda"


@pytest.fixture(scope="module")
def found():
    """Every set through one encoder."""
    return load_records(RECORDS).where(tier="text", backbone=("ViT-B-16", "ViT-B-32"))


def test_james_stein_is_below_the_oracle_ratio_beyond_doubt(found):
    estimate = found.paired("js_blend", ORACLE, cells="all")
    assert estimate.G == 8
    assert estimate.high < 0


def test_leave_one_out_is_below_it_by_a_point_or_two(found):
    estimate = found.paired("loo_blend", ORACLE, cells="all")
    assert estimate.G == 8
    assert -2.5 < estimate.low < estimate.high < 0
    late = found.where(shots=(4, 8, 16)).paired("loo_blend", ORACLE, cells="all")
    assert late.high < 0, "README says so"


@pytest.mark.parametrize("method", ["clap", "lpp"])
def test_probes_pass_it_from_four_shots_on_beyond_doubt(found, method):
    estimate = found.where(shots=(4, 8, 16)).paired(method, ORACLE, cells="all")
    assert estimate.G == 8
    assert estimate.low > 0


@pytest.mark.parametrize("dataset", ["stanford-cars", "fgvc-aircraft"])
@pytest.mark.parametrize("method", ["clap", "lpp"])
def test_they_pass_it_by_two_points_where_text_leaves_room(found, dataset, method):
    for shots in (4, 8, 16):
        assert found.where(dataset=dataset, shots=shots).paired(method, ORACLE, cells="all").mean > 2
