"""The sanity gate speaks up before hours of computing on features that cannot be right."""

import logging

import pytest

from kshot import run
from kshot.bench.study import parse_study
from kshot.data.gate import failed_gates
from kshot.data.store import Store
from small_store import write_pets, write_stratum

STUDY = {
    "name": "pets",
    "datasets": ["Pets"],
    "backbones": ["ViT-B-16"],
    "tiers": ["ensemble"],
    "shots": [1],
    "seeds": [0],
    "methods": ["zero_shot"],
}


@pytest.mark.parametrize(("right", "warned"), [(90, False), (10, True)])
def test_run_warns_where_the_gate_fails_(tmp_path, caplog, right, warned):
    write_pets(Store(tmp_path / "features"), right, logit_scale=7.5, logit_bias=-2.0)
    with caplog.at_level(logging.WARNING):
        run(parse_study(STUDY, "test"), records=tmp_path / "records", features=tmp_path / "features", workers=1)
    assert ("Pets with ViT-B-16: zero-shot with tier ensemble: 10.0 %" in caplog.text) is warned
    assert ("fail the sanity gate: see `kshot features check`" in caplog.text) is warned


def test_generated_numbers_have_no_gate(tmp_path):
    write_pets(Store(tmp_path), 10, simulated=True)
    assert failed_gates(Store(tmp_path), [("Pets", "ViT-B-16"), ("other", "ViT-B-16")]) == {}


def test_features_without_the_tier_of_the_bands_have_no_gate(tmp_path):
    write_stratum(Store(tmp_path), "Pets", "ViT-B-16")
    assert failed_gates(Store(tmp_path), [("Pets", "ViT-B-16")]) == {}
