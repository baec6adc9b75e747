"""`kshot run STUDY --on … --report`: a study's shots, seeds and methods on other features."""

from pathlib import Path

from folders import edit
from kshot.results import load_records


def accuracies(folder):
    found = load_records(folder).to_arrow().to_pylist()
    names = ("dataset", "backbone", "tier", "shots", "seed", "method")
    return {tuple(row[name] for name in names): row["accuracy"] for row in found}


def test_on_runs_the_study_on_features_of_ones_own_and_report_shows_it(kshot):
    done = kshot("run", "tiny.toml", "--on", "digits/lite0/photo", "--on", "tuxpaint/lite0/dataset", "--report")
    assert done.returncode == 0, done.stderr
    records = Path("records/tiny-on-digits-tuxpaint")
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
    assert "The best validation-free head here is" in shown
    assert shown.strip().endswith(f"wrote {records}/report/report.html")
    assert (records / "report" / "report.html").is_file()


def test_without_report_the_next_command_is_said(kshot):
    done = kshot("run", "tiny.toml", "--on", "tuxpaint/lite0/dataset")
    assert done.stdout.strip().endswith("next: kshot report records/tiny-on-tuxpaint")
    assert not Path("records/tiny-on-tuxpaint/report").exists()
    again = kshot("run", "tiny.toml", "--on", "tuxpaint/lite0/dataset")
    assert "2 done, 0 to compute" in again.stdout


def test_mistakes_in_on(kshot):
    for text, says in (
        ("digits/lite0", "--on digits/lite0: write DATASET/BACKBONE/TIER"),
        ("digits/lite0/fotos", "unknown tier 'fotos'"),
        ("digit/lite0/photo", "unknown dataset/backbone 'digit/lite0'. Did you mean digits/lite0"),
        ("Pets/ViT-B-16/photo", "not encoded in features yet: Pets by ViT-B-16. Type: kshot encode --dataset Pets"),
        ("../x/y", "cannot be a file name"),
    ):
        done = kshot("run", "tiny.toml", "--on", text)
        assert done.returncode == 2
        assert says in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
