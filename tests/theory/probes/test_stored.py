"""Probes on a stored world: the stratum's tables, the records' tables and the command."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kshot.bench.record import CellFacts, Record
from kshot.bench.records import Records
from kshot.bench.study import Cell, load_study
from kshot.cli.main import app
from kshot.data.simulated import World, write
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import InputError
from kshot.theory.probes.headroom import headroom_row
from kshot.theory.probes.over_records import diagnose_records
from kshot.theory.probes.stratum_tables import diagnose_stratum

NAMES = ("sim-a", "sim-b", "sim-c")
STUDY = """
name = "tiny"
datasets = ["sim-a", "sim-b", "sim-c"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [2]
seeds = [0, 1]
methods = ["zero_shot", "oracle_lambda"]
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    found = Store(tmp_path_factory.mktemp("features"))
    for name, error in zip(NAMES, (0.2, 0.5, 0.9), strict=True):
        world = World(name, 5, 0.3, 0.6, 0.8, error, dim=24, participation=8.0, pool_per_class=10, test_per_class=8)
        write(world, found)
    return found


def stratum_sections(store, shots, seeds):
    text = load_prior(store, "sim-a", "simulated", "dataset").text
    return diagnose_stratum(load_stratum(store, "sim-a", "simulated"), text, shots, seeds, lambda what: None)


def test_every_probe_has_a_table_and_thin_shot_counts_are_left_out(store):
    sections = stratum_sections(store, [1, 2, 4, 16], [0, 1])
    assert len(sections) == 8
    by_title = {section.title: section for section in sections}
    for title in list(by_title)[2:]:
        needs_spread = "James–Stein" in title
        assert [row["K"] for row in by_title[title].rows] == ([2, 4] if needs_spread else [1, 2, 4])
    values = [v for s in sections for row in s.rows for v in row.values()]
    assert np.isfinite(values).all()


def test_one_seed_has_no_spread(store):
    with pytest.raises(InputError, match="--seeds"):
        stratum_sections(store, [2], [0])


def test_no_usable_shot_count_is_an_error(store):
    with pytest.raises(InputError, match="--shots"):
        stratum_sections(store, [8, 16], [0, 1])


def records_with(folder: Path, methods) -> Path:
    """Cells written by hand: accuracy and selected value of each method as a function of (dataset, seed)."""
    file = folder / "tiny.toml"
    file.write_text(STUDY)
    study, records = load_study(file), Records(folder / "records")
    records.claim(study, [], {})
    for index, dataset in enumerate(NAMES):
        for seed in (0, 1):
            cell = Cell(dataset, "simulated", "dataset", 2, seed)
            facts = CellFacts(True, "float32", 5, "official", {}, lambda_js=-index - seed / 2, d2=1.0, v=0.1, share=0.8)
            rows = [
                Record(
                    cell, name, name, ("test",), "ok", accuracy=values(index, seed)[0], selected=values(index, seed)[1]
                )
                for name, values in methods.items()
            ]
            records.write(study, facts, rows)
    return records.folder


def test_records_without_the_methods_give_no_table(store, tmp_path):
    folder = records_with(tmp_path, {"zero_shot": lambda d, s: (0.5, {})})
    assert diagnose_records(folder, store, "dataset") == []


def test_surplus_and_tuned_weight_come_from_the_records(store, tmp_path):
    headrooms = []
    for name in NAMES:
        text = load_prior(store, name, "simulated", "dataset").text
        headrooms.append(headroom_row(load_stratum(store, name, "simulated").pool, text)["headroom"])
    surplus = np.argsort(np.argsort(headrooms)) / 100
    folder = records_with(
        tmp_path,
        {
            "zero_shot": lambda d, s: (0.3 + 0.1 * (d == 1), {}),
            "oracle_lambda": lambda d, s: (0.5, {"lambda": 0.2}),
            "clap": lambda d, s: (0.5 + float(surplus[d]), {}),
            "loo_blend": lambda d, s: (0.4, {"lambda": 0.1 * d + 0.05 * s}),
            "tip_adapter_test": lambda d, s: (0.4, {"alpha": 3.0 * d + s, "beta": 1.0}),
        },
    )
    over_strata, over_cells = diagnose_records(folder, store, "dataset")
    assert over_strata.rows[0]["strata"] == 3
    assert over_strata.rows[0]["Spearman"] == pytest.approx(1)
    assert over_cells.rows[0]["cells"] == 6
    assert over_cells.rows[0]["leave-one-out"] == pytest.approx(1)
    assert over_cells.rows[0]["James–Stein"] == pytest.approx(-1)
    assert diagnose_records(folder, store, "photo") == []


def test_a_stratum_without_features_is_left_out_and_told(store, tmp_path):
    folder = records_with(
        tmp_path,
        {
            "zero_shot": lambda d, s: (0.3, {}),
            "oracle_lambda": lambda d, s: (0.5, {"lambda": 0.2}),
            "clap": lambda d, s: (0.5 + 0.01 * d, {}),
            "loo_blend": lambda d, s: (0.4, {"lambda": 0.1 * d + 0.05 * s}),
            "tip_adapter_test": lambda d, s: (0.4, {"alpha": 3.0 * d + s, "beta": 1.0}),
        },
    )
    fewer = Store(tmp_path / "fewer")
    shutil.copytree(store.root, fewer.root)
    shutil.rmtree(fewer.root / NAMES[1])
    surplus, tuned = diagnose_records(folder, fewer, "dataset")
    assert tuned.rows[0]["cells"] == 6
    assert f"Left out, without features in {fewer.root}: {NAMES[1]}/simulated" in surplus.note


def test_the_command_prints_every_table(store):
    arguments = ["--on", "sim-b/simulated/dataset", "--shots", "2", "--seeds", "2", "--features", str(store.root)]
    result = CliRunner().invoke(app, ["records", "probe", *arguments])
    assert result.exit_code == 0, result.output
    for title in ("Common offset", "Headroom", "Spread", "Translating", "without the common offset", "per class"):
        assert title in result.stdout
    assert "simulated" in result.stdout
