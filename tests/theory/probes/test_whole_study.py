"""Probes over a study: the same numbers as one stratum's, on any engine, resumed and never measured twice."""

import csv
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from kshot.bench.engines.local import LocalEngine
from kshot.bench.records import Records
from kshot.bench.run import compute, open_run
from kshot.bench.study import load_study
from kshot.bench.work import find_work
from kshot.cli.main import app
from kshot.data.simulated import World, put, sample
from kshot.data.store import Store
from kshot.data.stratum import Prior, load_prior, load_stratum
from kshot.results import load_records
from kshot.theory.probes.draw_probes import EVERYTHING
from kshot.theory.probes.headroom import headroom_row
from kshot.theory.probes.per_class import per_class_row
from kshot.theory.probes.spread import spread_row
from kshot.theory.probes.stored import ProbeFolder
from kshot.theory.probes.whole_study import GROUPS, probe_batches, probe_workload, run_probe_batch

STUDY = """
name = "probed"
datasets = ["sim-a", "sim-b", "sim-c"]
backbones = ["one"]
tiers = ["dataset"]
shots = [1, 2, 16]
seeds = {seeds}
methods = ["zero_shot", "js_blend", "oracle_lambda"]
"""


def everything(cell):
    return True


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    store = Store(folder / "features")
    for number, name in enumerate(("sim-a", "sim-b", "sim-c")):
        pool = 10 if name == "sim-b" else 24
        world = World(name, 4, 0.3, 0.5, 0.8, 0.3 + 0.2 * number, 6.0, 16, pool_per_class=pool, test_per_class=8)
        drawn = sample(world)
        put(store, world, "one", {"pool": drawn.pool, "test": drawn.test}, {"dataset": drawn.text})
    (folder / "two.toml").write_text(STUDY.format(seeds=[0, 1]))
    (folder / "three.toml").write_text(STUDY.format(seeds=[0, 1, 2]))
    return folder


@pytest.fixture(scope="module")
def records(stored):
    """Two draws, run and probed here."""
    target = Records(stored / "records")
    work = open_run(load_study(stored / "two.toml"), stored / "features", target)
    compute(work, stored / "features", target, LocalEngine(1))
    for batch in probe_batches(work, ProbeFolder(target.folder), GROUPS, everything):
        run_probe_batch(work.study, stored / "features", ProbeFolder(target.folder), batch)
    return target


def quantities(folder):
    table = ProbeFolder(folder).load()
    names = ("dataset", "backbone", "tier", "shots", "seed", "quantity")
    keys = zip(*(table[name].to_pylist() for name in names), strict=True)
    return dict(zip(keys, table["value"].to_pylist(), strict=True))


def test_stored_probes_are_those_of_the_stratum(stored, records):
    found, store = quantities(records.folder), Store(stored / "features")
    stratum, text = load_stratum(store, "sim-a", "one"), load_prior(store, "sim-a", "one", "dataset").text
    where = ("sim-a", "one", "dataset")
    assert found[(*where, 0, -1, "headroom.headroom")] == pytest.approx(headroom_row(stratum.pool, text)["headroom"])
    draws = [stratum.episode(2, seed, Prior(text)).reveal(EVERYTHING) for seed in (0, 1)]
    spread = spread_row(stratum.pool, text, [draw.support for draw in draws], 2)
    assert found[(*where, 2, -1, "spread.measured SD")] == pytest.approx(spread["measured SD"])
    assert found[(*where, 2, -1, "spread.predicted SD")] == pytest.approx(spread["predicted SD"])
    one = per_class_row(draws[1].support, draws[1].test, text)
    assert found[(*where, 2, 1, "per_class.split half")] == pytest.approx(one["split half"])


def test_one_shot_has_the_probes_that_need_no_spread(records):
    names = {key[-1].split(".")[0] for key in quantities(records.folder) if key[3] == 1}
    assert names == {"objectives", "translation", "per_class"}


def test_a_dropped_shot_count_has_a_prediction_and_no_draw(records):
    found = {key[3:] for key in quantities(records.folder) if key[0] == "sim-b" and key[3] == 16}
    assert found == {(16, -1, "spread.predicted SD"), (16, -1, "spread.isotropic SD")}


def test_what_is_stored_is_not_measured_again_and_new_draws_are(stored, records):
    folder = ProbeFolder(records.folder)
    work = find_work(load_study(stored / "two.toml"), Store(stored / "features"), records)
    assert probe_batches(work, folder, GROUPS, everything) == []
    path = next(iter(sorted(folder.folder.glob("draws/sim-a/*/*/K02.parquet"))))
    path.unlink()
    (batch,) = probe_batches(work, folder, GROUPS, everything)
    assert (batch.cells[0].dataset, batch.cells[0].shots, len(batch.cells)) == ("sim-a", 2, 2)
    grown = find_work(load_study(stored / "three.toml"), Store(stored / "features"), records)
    missing = probe_batches(grown, folder, ["draws"], everything)
    assert {len(batch.cells) for batch in missing} == {3}
    run_probe_batch(work.study, stored / "features", folder, batch)
    assert path.is_file()


def test_an_engine_gives_the_same_numbers_and_shards_share_the_work(stored, records):
    copy = Records(stored / "again")
    work = open_run(load_study(stored / "two.toml"), stored / "features", copy)
    folder = ProbeFolder(copy.folder)
    parts = [probe_batches(work, folder, GROUPS, everything, shard, 2) for shard in (0, 1)]
    assert sum(map(len, parts)) == len(probe_batches(work, folder, GROUPS, everything))
    LocalEngine(2)(probe_workload(work.study, stored / "features", folder, parts[0] + parts[1]), lambda cells: None)
    assert quantities(copy.folder) == quantities(records.folder)


def test_the_report_shows_what_is_stored(records):
    results = load_records(records.folder)
    pooled = {row[0]: row[1] for row in results.table("probes").rows}
    headrooms = [value for key, value in quantities(records.folder).items() if key[-1] == "headroom.headroom"]
    assert float(pooled["headroom, points of error"]) == pytest.approx(np.mean(headrooms))
    assert pooled["headroom, points of error"].G == 3
    strata = results.table("strata")
    row = next(row for row in strata.rows if row[0] == "sim-a · one")
    spread = quantities(records.folder)["sim-a", "one", "dataset", 2, -1, "spread.measured SD"]
    assert float(row[strata.columns.index("SD λ K=2")]) == pytest.approx(spread)


def test_the_command_says_how_much_it_measures(stored, records):
    options = ["--features", str(stored / "features"), "--workers", "1"]
    result = CliRunner().invoke(app, ["probe", str(records.folder), *options])
    assert result.exit_code == 0, result.output
    assert "0 batches" in result.stdout


def test_records_of_other_datasets_answer_only_what_is_a_formula(records, tmp_path):
    target = tmp_path / "beside.csv"
    arguments = ["published", str(records.folder), "--output", str(target), "--show", "agrees"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "theory.js_constant" in result.stdout
    assert "SIMULATED" in result.stdout
    with target.open(encoding="utf-8", newline="") as file:
        lines = {line["id"]: line for line in csv.DictReader(file)}
    assert len(lines) == 917
    assert lines["theory.js_constant"]["verdict"] == "agrees"
    assert lines["headline.clap.allk"]["verdict"] == "not computed"


def test_a_damaged_file_of_probes_is_missing_and_a_folder_named_like_a_column_changes_nothing(
    stored, records, tmp_path
):
    folder = tmp_path / "seed=7" / "records"
    shutil.copytree(records.folder, folder)
    assert quantities(folder) == quantities(records.folder)
    work = find_work(load_study(stored / "two.toml"), Store(stored / "features"), Records(folder))
    assert not list(probe_batches(work, ProbeFolder(folder), GROUPS, everything))
    damaged = sorted(ProbeFolder(folder).folder.glob("*/*/*/*/K*.parquet"))[0]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    (batch,) = probe_batches(work, ProbeFolder(folder), GROUPS, everything)
    run_probe_batch(work.study, stored / "features", ProbeFolder(folder), batch)
    assert quantities(folder) == quantities(records.folder)
