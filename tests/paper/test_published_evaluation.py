"""Numbers of the comparison against plain loops over the same records."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from kshot.errors import StudyError
from kshot.paper.arms import gather
from kshot.paper.claims import paper_claims, paper_rules
from kshot.paper.judge import judge
from kshot.paper.summary import arms_table, as_csv, lines_table, verdict_sentences
from kshot.paper.verdict import AGREES, DIFFERS, NOT_COMPUTED, SHOWN
from synthetic_records import as_table, synthetic_rows

PAPER = paper_rules().paper
STRATA = list(itertools.product(PAPER["datasets"], PAPER["backbones"]))
METHODS = ("zero_shot", "js_blend", "loo_blend", "clap", "lpp", "oracle_lambda")


@pytest.fixture(scope="module")
def rows():
    """The paper's grid with two seeds; Flowers102 ends at K = 4."""
    found = synthetic_rows(
        datasets=tuple(PAPER["datasets"]),
        backbones=tuple(PAPER["backbones"]),
        tiers=("dataset", "photo"),
        shots=(1, 2, 4, 16),
        seeds=(0, 1),
        methods=METHODS,
    )
    return [row | {"study": "paper"} for row in found if row["dataset"] != "Flowers102" or row["shots"] <= 4]


@pytest.fixture(scope="module")
def probes(rows):
    """Headroom of every stratum: its number in the list."""
    shared = {"tier": "dataset", "shots": 0, "seed": -1, "profile": "balanced", "quantity": "headroom.headroom"}
    return pa.Table.from_pylist(
        [shared | {"dataset": d, "backbone": b, "value": float(i)} for i, (d, b) in enumerate(STRATA)]
    )


def compared(tables, probes, *names):
    """The claims with these names, all unless given."""
    claims = [claim for claim in paper_claims() if not names or claim.id in names]
    arms = gather([as_table(rows) for rows in tables], [probes])
    return {line.claim.id: line for line in judge(claims, paper_rules(), arms).lines}


@pytest.fixture(scope="module")
def lines(rows, probes):
    return compared([rows], probes)


def cells(rows, **wanted):
    return {
        (r["dataset"], r["backbone"], r["tier"], r["shots"], r["seed"], r["method"]): r
        for r in rows
        if all(r[axis] in (value if isinstance(value, tuple) else (value,)) for axis, value in wanted.items())
    }


def differences(rows, method, baseline, **wanted):
    found = cells(rows, **wanted)
    return {
        key[:-1]: 100 * (r["accuracy"] - found[(*key[:-1], baseline)]["accuracy"])
        for key, r in found.items()
        if key[-1] == method and r["accuracy"] is not None
    }


def test_a_paired_difference_is_the_mean_over_its_cells(rows, lines):
    line = lines["headline.clap.allk"]
    truth = differences(rows, "clap", "oracle_lambda", tier="dataset")
    assert line.ours.mean == pytest.approx(np.mean(list(truth.values())))
    assert (line.ours.n, line.ours.G) == (len(truth), 10)
    assert line.ours.low < line.ours.mean < line.ours.high


def test_the_guard_leaves_out_the_dataset_that_ends_early(rows, lines):
    truth = [
        100 * r["accuracy"]
        for key, r in cells(rows, tier="dataset", shots=2, method="clap").items()
        if key[0] != "Flowers102"
    ]
    assert lines["leaderboard.k2.clap"].ours.mean == pytest.approx(np.mean(truth))
    assert lines["count.combos.balanced"].ours.mean == 45


def test_tiers_are_paired_within_draws(rows, lines):
    found = cells(rows, method="oracle_lambda")
    change = [
        _ratio(r) - _ratio(found[(*key[:2], "photo", *key[3:])]) for key, r in found.items() if key[2] == "dataset"
    ]
    assert lines["priors.dataset.lambda_oracle"].ours.mean == pytest.approx(np.mean(change))


def test_groups_are_reduced_as_the_claim_says(rows, lines):
    by_shots = [
        np.mean(list(differences(rows, "loo_blend", "zero_shot", tier="dataset", dataset="Pets", shots=k).values()))
        for k in (2, 4, 16)
    ]
    assert lines["loo.vs_zero_shot.pets_min"].ours.mean == pytest.approx(min(by_shots))


def test_probes_meet_records_over_strata(rows, lines):
    truth = differences(rows, "clap", "oracle_lambda", tier="dataset")
    surplus = [np.mean([value for key, value in truth.items() if key[:2] == stratum]) for stratum in STRATA]
    assert lines["strata.count.positive"].ours.mean == sum(s > 0 for s in surplus)
    assert lines["capacity.spearman"].ours.mean == pytest.approx(spearmanr(range(50), np.round(surplus, 9)).statistic)
    assert lines["strata.aircraft.vitb32.headroom"].ours.mean == 1


def test_what_the_records_lack_is_named_with_its_command(lines):
    assert lines["headline.hoso.allk"].verdict == NOT_COMPUTED
    assert lines["headline.hoso.allk"].why == "kshot run paper"
    assert lines["siglip2.allk.clap"].why == "kshot run siglip2"
    assert lines["strata.dtd.rn50.ratio"].why == "kshot records probe RECORDS"
    assert "kshot paper verify" in lines["theory.v1.error_formula"].why


def test_a_mean_over_fewer_datasets_is_not_the_papers_mean(rows, probes):
    fewer = [row for row in rows if row["dataset"] != "Pets"]
    mean, stratum = compared([fewer], probes, "headline.clap.allk", "strata.dtd.rn50.surplus").values()
    assert (mean.verdict, stratum.computed) == (NOT_COMPUTED, True)


def test_another_precision_is_paired_cell_by_cell(rows, probes):
    other = [
        row
        | {"study": "precision", "study_hash": "f" * 16, "dtype": "float64", "accuracy": (row["accuracy"] or 0) + 0.01}
        for row in rows
        if row["method"] in ("clap", "hoso") and row["dataset"] == "DTD" and row["tier"] == "dataset"
    ]
    (line,) = compared([rows, other], probes, "precision.others.max").values()
    assert line.ours.mean == pytest.approx(1)
    assert (line.verdict, line.why[:7]) == (SHOWN, "derived")


def test_an_arm_joins_the_matrix_only_on_the_same_features(rows, probes):
    arm = [
        row | {"study": "siglip2", "study_hash": "e" * 16, "backbone": "SigLIP2-B-16"}
        for row in rows
        if row["backbone"] == "RN50" and row["tier"] == "dataset"
    ]
    found = compared([rows, arm], probes, "siglip2.k4up.clap", "headline.clap.allk")
    truth = differences(rows, "clap", "oracle_lambda", tier="dataset", backbone="RN50", shots=(4, 16))
    assert found["siglip2.k4up.clap"].ours.mean == pytest.approx(np.mean(list(truth.values())))
    assert found["headline.clap.allk"].ours.n == len(differences(rows, "clap", "oracle_lambda", tier="dataset"))
    known = [row | {"features": '{"pool": "one"}'} for row in rows]
    views = [row | {"study": "augmentation", "features": '{"pool": "one", "views": "v"}'} for row in rows[:6]]
    assert "clap+views" in gather([as_table(known), as_table(views)], [probes])["matrix"].panel.methods
    moved = [row | {"made_by": "d" * 16, "features": '{"pool": "other"}'} for row in rows[:6]]
    with pytest.raises(StudyError, match="different features"):
        gather([as_table(known), as_table(moved)], [probes])


def test_the_lines_are_counted_printed_and_written(rows, probes):
    judged = judge(paper_claims(), paper_rules(), gather([as_table(rows)], [probes]))
    said = verdict_sentences(replace(judged, simulated=True))
    counted = next(sentence for sentence in said if "of 917 numbers" in sentence)
    assert said[0].startswith("These are NOT the same results as the paper")
    assert any("SIMULATED" in sentence for sentence in said)
    assert sum(line.computed for line in judged.lines) == int(counted.split()[0])
    assert [row[0] for row in arms_table(judged).rows][-1] == "all"
    assert len(lines_table(judged, judged.lines).rows) == 917
    assert len(as_csv(judged).splitlines()) == 918
    assert {AGREES, DIFFERS, NOT_COMPUTED} <= {line.verdict for line in judged.lines}


def _ratio(row):
    return json.loads(row["selected"])["lambda"]
