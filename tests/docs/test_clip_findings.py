"""The paper's three findings in the kept records of real CLIP features."""

from pathlib import Path

import pytest

from kshot.results import load_records

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "clip" / "records"
ORACLE = "oracle_lambda"


@pytest.fixture(scope="module")
def found():
    return load_records(RECORDS).where(tier="text")


def test_james_stein_is_below_the_oracle_ratio_beyond_doubt(found):
    estimate = found.paired("js_blend", ORACLE)
    assert estimate.G == 4
    assert estimate.high < 0


def test_leave_one_out_is_within_one_and_a_half_points_of_it(found):
    estimate = found.paired("loo_blend", ORACLE)
    assert estimate.G == 4
    assert -1.5 < estimate.low < estimate.high < 0


@pytest.mark.parametrize("dataset", ["stanford-cars", "fgvc-aircraft"])
@pytest.mark.parametrize("method", ["clap", "lpp"])
def test_probes_pass_it_from_four_shots_on(found, dataset, method):
    for shots in (4, 8, 16):
        assert found.where(dataset=dataset, shots=shots).paired(method, ORACLE).mean > 2
