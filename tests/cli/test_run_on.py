"""`kshot run STUDY --on … --report`: a study's shots, seeds and methods on other features."""

from pathlib import Path

import pytest

from folders import assert_refused, edit
from kshot.results import load_records

pytestmark = pytest.mark.ci


def accuracies(folder="records", study="tiny"):
    found = load_records(folder, study).to_arrow().to_pylist()
    names = ("dataset", "backbone", "tier", "shots", "seed", "method")
    return {tuple(row[name] for name in names): row["accuracy"] for row in found}


def test_on_runs_the_study_on_features_of_ones_own_and_report_shows_it(kshot):
    done = kshot("run", "tiny.toml", "--on", "digits/lite0/photo", "--on", "tuxpaint/lite0/dataset", "--report")
    assert done.returncode == 0, done.stderr
    ran = accuracies()
    assert {key[:3] for key in ran} == {("digits", "lite0", "photo"), ("tuxpaint", "lite0", "dataset")}
    assert {key[3:] for key in ran} == {(k, 0, m) for k in (1, 2) for m in ("zero_shot", "ncm", "oracle_lambda")}
    edit("tiny.toml", '"sim-satellite"', '"digits", "tuxpaint"', to="plain.toml")
    edit("plain.toml", '"simulated"', '"lite0"')
    edit("plain.toml", '["dataset"]', '["dataset", "photo"]')
    kshot("run", "plain.toml", "--records", "plain")
    plain = accuracies("plain")
    assert ran == {key: plain[key] for key in ran}
    shown = done.stdout[done.stdout.index("Leaderboard") :]
    assert "Oracle ratio" in shown
    assert shown.strip().endswith("wrote records/reports/tiny/report.html")
    assert Path("records/reports/tiny/report.html").is_file()


def test_each_choice_of_features_is_a_query_on_one_cache(kshot):
    first, second = "digits/lite0/dataset", "digits/lite0/photo"
    computed = []
    for chosen in ([first], [first, second], [second], [second, first]):
        done = kshot("run", "tiny.toml", *(word for stratum in chosen for word in ("--on", stratum)))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().endswith("next: kshot report tiny")
        assert {key[:3] for key in accuracies()} == {tuple(stratum.split("/")) for stratum in chosen}
        computed.append(int(done.stdout.partition(" to compute")[0].split()[-1]))
    assert computed == [6, 6, 0, 0]
    assert not Path("records/reports").exists()


def test_mistakes_in_on(kshot):
    for text, says in (
        ("digits/lite0", "features 'digits/lite0': write DATASET/BACKBONE/TIER"),
        ("digits/lite0/fotos", "unknown tier 'fotos'"),
        ("digit/lite0/photo", "unknown dataset/backbone 'digit/lite0'. Did you mean digits/lite0"),
        ("Pets/ViT-B-16/photo", "not encoded in features yet: Pets by ViT-B-16. Type: kshot encode --dataset Pets"),
        ("../x/y", "cannot be a file name"),
    ):
        assert_refused(kshot("run", "tiny.toml", "--on", text), says)
