import pytest

from folders import comparable
from kshot.bench import run as bench_run
from kshot.bench.engines.local import LocalEngine
from kshot.bench.records import Records
from kshot.bench.run import compute, open_run
from kshot.bench.study import load_study

pytestmark = pytest.mark.ci


def test_many_files_are_joined_while_the_run_goes_on(steady, kshot, tmp_path, monkeypatch):
    steady(seeds=3, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    monkeypatch.setattr(bench_run, "LOOSE_FILES", 5)
    monkeypatch.syspath_prepend(tmp_path)
    records, features = Records(tmp_path / "tidy"), tmp_path / "features"
    told = []
    compute(
        open_run(load_study("steady.toml"), features, records), features, records, LocalEngine(2), finished=told.append
    )
    assert sum(told) == 18
    assert len(records.joined()) == 1
    assert len(records.loose()) < 9
    assert comparable("tidy").equals(comparable("calm"))
    assert not open_run(load_study("steady.toml"), features, records).missing
