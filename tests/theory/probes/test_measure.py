"""Probes of a stratum and of a study: the same numbers on any engine, resumed, never measured twice, and printed."""

import json
from itertools import product

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from kshot.bench.probes import ALL_PROBES, probe_query, probe_table
from kshot.bench.records import Records
from kshot.bench.run import missing_tasks
from kshot.bench.study import load_study
from kshot.cli.main import app
from kshot.data.simulated import World, put, sample
from kshot.data.store import Store
from kshot.data.stratum import Prior, load_prior, load_stratum
from kshot.errors import InputError
from kshot.report.context import Context, Probed
from kshot.report.tables import make_table
from kshot.report.tables.stratum_probes import OF_ONE_STRATUM, stratum_tables
from kshot.results import load_records
from kshot.runs import measure, run
from kshot.stats.panel import panel
from kshot.theory.probes.measure import EVERYTHING, measure_stratum
from kshot.theory.probes.per_class import per_class_row
from kshot.theory.probes.ratio import headroom_row
from kshot.theory.probes.spread import class_moments, measured_spread, predicted_row
from kshot.types import BALANCED
from synthetic_records import as_table, synthetic_rows

STUDY = """
name = "probed"
datasets = ["sim-a", "sim-b", "sim-c"]
backbones = ["one"]
tiers = ["dataset"]
shots = [1, 2, 16]
seeds = {seeds}
methods = ["zero_shot", "js_blend", "oracle_lambda"]
"""


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
    where = {"features": stored / "features", "records": stored / "records", "workers": 1}
    run(stored / "two.toml", **where)
    return measure(stored / "two.toml", **where)


def quantities(folder):
    return by_key(probe_table(Records(folder), "probed").to_pylist())


def by_key(rows):
    names = ("dataset", "backbone", "tier", "shots", "seed", "quantity")
    return {tuple(row[name] for name in names): row["value"] for row in rows}


def test_stored_probes_are_those_of_the_stratum(stored, records):
    found, store = quantities(records.folder), Store(stored / "features")
    stratum, text = load_stratum(store, "sim-a", "one"), load_prior(store, "sim-a", "one", "dataset").text
    where = ("sim-a", "one", "dataset")
    assert found[(*where, 0, -1, "headroom.headroom")] == pytest.approx(headroom_row(stratum.pool, text)["headroom"])
    draws = [stratum.episode(2, seed, Prior(text)).reveal(EVERYTHING) for seed in (0, 1)]
    spread = measured_spread([draw.support for draw in draws], text)
    assert found[(*where, 2, -1, "spread.measured SD")] == pytest.approx(spread)
    predicted = predicted_row(class_moments(stratum.pool, text), 16, 2)["predicted SD"]
    assert found[(*where, 2, -1, "spread.predicted SD")] == pytest.approx(predicted)
    one = per_class_row(draws[1].support, draws[1].test, text)
    assert found[(*where, 2, 1, "per_class.split half")] == pytest.approx(one["split half"])


def test_one_stratum_alone_has_the_same_numbers_without_thin_shot_counts(stored, records):
    store = Store(stored / "features")
    stratum, text = load_stratum(store, "sim-b", "one"), load_prior(store, "sim-b", "one", "dataset").text
    measured = measure_stratum(stratum, text, [1, 2, 16], [0, 1], lambda what: None)
    kept = {key[3:]: value for key, value in quantities(records.folder).items() if key[0] == "sim-b" and key[3] != 16}
    assert {(*at, name): value for at, own in measured.items() for name, value in own.items()} == kept
    with pytest.raises(InputError, match="--seeds"):
        measure_stratum(stratum, text, [2], [0], lambda what: None)
    with pytest.raises(InputError, match="--shots"):
        measure_stratum(stratum, text, [8, 16], [0, 1], lambda what: None)


def test_on_prints_one_table_per_probe(stored, records):
    arguments = ["--on", "sim-a/one/dataset", "--shots", "1", "--shots", "2", "--seeds", "2"]
    arguments += ["--features", str(stored / "features")]
    result = CliRunner().invoke(app, ["records", "probe", *arguments])
    assert result.exit_code == 0, result.output
    for title, _ in OF_ONE_STRATUM.values():
        assert title in result.stdout
    assert "These features are simulated" in result.stdout


def test_one_stratums_table_has_means_over_draws_and_quotients_of_means():
    def at(shots, *values):
        return {("d", "b", "t", shots, seed, BALANCED): value for seed, value in enumerate(values)}

    quantities = {"deficit": at(2, -1.0, -3.0), "recovered": at(2, 0.0, 1.0)}
    spread = {"d_eff": at(0, 9.0), "measured SD": at(2, 0.2), "predicted SD": at(2, 0.4) | at(16, 0.1)}
    loo = {"one ratio": at(1, 50.0) | at(2, 60.0), "per-class LOO": at(2, 1.0)}
    named = (("counterfactual", quantities), ("spread", spread), ("per_class", loo))
    probed = Probed({f"{probe}.{name}": values for probe, own in named for name, values in own.items()})
    tables = {table.title: table.texts() for table in stratum_tables(probed)}
    assert tables["James–Stein without the common offset"] == [("2", "−2", "0.5", "0.25")]
    assert tables["Spread of the James–Stein ratio over draws"] == [
        ("2", "9", "0.2", "0.4", "0.5"),
        ("16", "9", "–", "0.1", "–"),
    ]
    assert tables["One ratio per class"] == [("1", "50", "–"), ("2", "60", "1")]


def test_pooled_probes_meet_records_over_strata_and_cells():
    """Headroom against CLAP's surplus, and both ratios against the tuned alpha, by scipy."""
    backbones = ("ViT-B-16", "RN50", "ViT-L-14")
    rows = synthetic_rows(
        ("a", "b", "c"), backbones, ("dataset",), (2, 4), (0, 1), ("zero_shot", "js_blend", "clap", "oracle_lambda")
    )
    alphas = iter(np.random.default_rng(0).permutation(36).tolist())
    tip = [
        row | {"method": "tip_adapter_test", "title": "Tip", "selected": json.dumps({"alpha": next(alphas)})}
        for row in rows
        if row["method"] == "clap"
    ]
    strata = {(d, b): float(number) for number, (d, b) in enumerate(product("abc", backbones))}
    probed = Probed({"headroom.headroom": {(d, b, "dataset", 0, -1, BALANCED): v for (d, b), v in strata.items()}})
    found = {row[0]: row[1] for row in make_table("probes", panel(as_table(rows + tip)), Context(probed=probed)).rows}
    accuracy = {(r["dataset"], r["backbone"], r["method"], r["shots"], r["seed"]): r["accuracy"] for r in rows}
    cells = list(product((2, 4), (0, 1)))
    surplus = [np.mean([accuracy[*s, "clap", *c] - accuracy[*s, "oracle_lambda", *c] for c in cells]) for s in strata]
    expected = spearmanr(list(strata.values()), np.round(surplus, 9)).statistic
    assert found["headroom against CLAP's surplus: Spearman"].mean == pytest.approx(expected)
    ratio = [
        json.loads(r["selected"])["lambda"]["mean"]
        for r in rows
        if r["method"] == "js_blend" and r["backbone"] == "RN50"
    ]
    alpha = [json.loads(r["selected"])["alpha"] for r in tip if r["backbone"] == "RN50"]
    rho = found["James–Stein ratio against Tip-Adapter's alpha, RN50"].mean
    assert rho == pytest.approx(spearmanr(ratio, alpha).statistic)


def test_one_shot_has_the_probes_that_need_no_spread(records):
    names = {key[-1].split(".")[0] for key in quantities(records.folder) if key[3] == 1}
    assert names == {"objectives", "translation", "per_class"}


def test_a_dropped_shot_count_has_a_prediction_and_no_draw(records):
    found = {key[3:] for key in quantities(records.folder) if key[0] == "sim-b" and key[3] == 16}
    assert found == {(16, -1, "spread.predicted SD"), (16, -1, "spread.isotropic SD")}


def test_what_is_stored_is_not_measured_again_and_new_draws_are(stored, records):
    def lacking(study):
        asked = probe_query(load_study(stored / study), Store(stored / "features"), ALL_PROBES, lambda cell: True)
        return sorted(one.spec.name for task in missing_tasks(asked, asked.cells, records) for one in task.wanted)

    assert lacking("two.toml") == []
    # Three sets at two shot counts and one at a third, which has too small a pool in one of them.
    assert set(lacking("three.toml")) == {"probe:draws", "probe:per_class", "probe:spread"}


def test_processes_and_shards_give_the_same_numbers(stored, records):
    where = {"features": stored / "features", "records": stored / "again"}
    for index in range(2):
        measure(stored / "two.toml", shard=(index, 2), workers=1 + index, **where)
    assert quantities(stored / "again") == quantities(records.folder)


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


def test_the_command_measures_what_is_lacking(stored, records):
    options = ["--features", str(stored / "features"), "--records", str(records.folder), "--workers", "1"]
    result = CliRunner().invoke(app, ["records", "probe", str(stored / "two.toml"), *options])
    assert result.exit_code == 0, result.output
    assert "probes in" in result.stdout
