"""`kshot run STUDY --on … --report`: a study's shots, seeds and methods on other features."""

from pathlib import Path

import pytest

from folders import assert_refused, edit
from kshot.bench.study import load_study
from kshot.files import safe_name
from kshot.results import load_records

pytestmark = pytest.mark.ci


def accuracies(folder):
    found = load_records(folder).to_arrow().to_pylist()
    names = ("dataset", "backbone", "tier", "shots", "seed", "method")
    return {tuple(row[name] for name in names): row["accuracy"] for row in found}


def test_on_runs_the_study_on_features_of_ones_own_and_report_shows_it(kshot):
    done = kshot("run", "tiny.toml", "--on", "digits/lite0/photo", "--on", "tuxpaint/lite0/dataset", "--report")
    assert done.returncode == 0, done.stderr
    records = Path("records/tiny-on-digits+lite0+photo+tuxpaint+lite0+dataset")
    ran = accuracies(records)
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
    assert "best validation-free head" in shown
    assert shown.strip().endswith(f"wrote {records}/report/report.html")
    assert (records / "report" / "report.html").is_file()


def test_without_report_the_next_command_is_said(kshot):
    done = kshot("run", "tiny.toml", "--on", "tuxpaint/lite0/dataset")
    assert done.stdout.strip().endswith("next: kshot report records/tiny-on-tuxpaint+lite0+dataset")
    assert not Path("records/tiny-on-tuxpaint+lite0+dataset/report").exists()
    again = kshot("run", "tiny.toml", "--on", "tuxpaint/lite0/dataset")
    assert "2 done, 0 to compute" in again.stdout


def test_each_choice_of_features_has_records_of_its_own_whatever_the_order(kshot):
    first, second = "digits/lite0/dataset", "digits/lite0/photo"
    for _ in range(2):
        for chosen in ([first], [second], [first, second], [second, first]):
            done = kshot("run", "tiny.toml", *(word for stratum in chosen for word in ("--on", stratum)))
            assert done.returncode == 0, done.stderr
            found = accuracies(done.stdout.split()[-1])
            assert {key[:3] for key in found} == {tuple(stratum.split("/")) for stratum in chosen}
    assert "4 done, 0 to compute" in done.stdout
    assert len(list(Path("records").iterdir())) == 3


def test_names_of_features_that_are_long_or_hold_a_plus():
    study = load_study("embedded")
    many = [(f"dataset-{number}", "lite0", "photo") for number in range(20)]
    pairs = ([("a+b", "c", "d")], [("a", "b+c", "d")], many, many[1:])
    names = {study.on_features(strata).name for strata in pairs}
    assert len(names) == len(pairs)
    assert all(safe_name("study", name) for name in names)


def test_mistakes_in_on(kshot):
    for text, says in (
        ("digits/lite0", "features 'digits/lite0': write DATASET/BACKBONE/TIER"),
        ("digits/lite0/fotos", "unknown tier 'fotos'"),
        ("digit/lite0/photo", "unknown dataset/backbone 'digit/lite0'. Did you mean digits/lite0"),
        ("Pets/ViT-B-16/photo", "not encoded in features yet: Pets by ViT-B-16. Type: kshot encode --dataset Pets"),
        ("../x/y", "cannot be a file name"),
    ):
        assert_refused(kshot("run", "tiny.toml", "--on", text), says)
