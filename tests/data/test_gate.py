"""The sanity gate speaks up before hours of computing on features that cannot be right."""

import logging

import numpy as np
import pytest

from kshot.bench.run import ThisProcess, complete
from kshot.bench.study import parse_study
from kshot.data.gate import failed_gates
from kshot.data.store import Store

CLASSES = [f"breed {number}" for number in range(37)]
STUDY = {
    "name": "pets",
    "datasets": ["Pets"],
    "backbones": ["ViT-B-16"],
    "tiers": ["ensemble"],
    "shots": [1],
    "seeds": [0],
    "methods": ["zero_shot"],
}


def write_pets(store, confused, simulated=False):
    """Classes that text tells apart, with that many test pictures of each ten filed under another class."""
    rng = np.random.default_rng(0)
    text = np.linalg.qr(rng.normal(size=(64, 64)))[0][:37].astype(np.float32)
    about = {"simulated": simulated}
    for part, per_class in (("pool", 8), ("test", 10)):
        y = np.repeat(np.arange(37), per_class)
        X = text[(y + (np.arange(len(y)) % 10 < (confused if part == "test" else 0))) % 37]
        ids = [f"{part}/{row}" for row in range(len(y))]
        store.write_images("Pets", "ViT-B-16", part, X, y, ids, CLASSES, **about)
    store.write_text("Pets", "ViT-B-16", "ensemble", text, None, CLASSES, **about)


@pytest.mark.parametrize(("confused", "warned"), [(1, False), (9, True)])
def test_run_warns_where_the_gate_fails(tmp_path, caplog, confused, warned):
    write_pets(Store(tmp_path / "features"), confused)
    with caplog.at_level(logging.WARNING):
        complete(parse_study(STUDY, "test"), tmp_path / "records", tmp_path / "features", ThisProcess())
    assert ("Pets with ViT-B-16: zero-shot with tier ensemble: 10.0 %" in caplog.text) is warned
    assert ("fail the sanity gate: see `kshot features check`" in caplog.text) is warned


def test_generated_numbers_have_no_gate(tmp_path):
    write_pets(Store(tmp_path), 9, simulated=True)
    assert failed_gates(Store(tmp_path), [("Pets", "ViT-B-16"), ("other", "ViT-B-16")]) == {}
