"""The board's pages: entries beside kshot's own heads, each with its page and archive; the refused with the reason."""

import json
import re
import shutil
from contextlib import chdir
from dataclasses import replace

import numpy as np
import pytest
from kshot.board.site import build
from kshot.board.verdict import judge_folder
from tools.one_submission import added_submission
from typer.testing import CliRunner

from board_yard import ABOUT, FEATURES, raise_results, study
from kshot.cli.main import app
from kshot.files import write_text
from kshot.report.regimes import regimes
from kshot.results import load_records


def embedded_data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])


@pytest.fixture(scope="module")
def built(yard, tmp_path_factory):
    """One sound entry, one whose results were raised, one copy under an earlier date, and a stray folder."""
    place = tmp_path_factory.mktemp("site")
    submissions = place / "submissions"
    for name in ("pair", "raised", "copy"):
        shutil.copytree(yard / "submissions" / "pair", submissions / name)
    for name, date in (("copy", "2020-01-01"), ("pair", "2026-11-01")):
        answers = ABOUT.format(name=name, date=date).replace(f'name = "{name}"', f'name = "<i>{name}</i>"')
        (submissions / name / "about.toml").write_text(answers)
    raise_results(submissions / "raised", with_answers=False)
    (submissions / "stray").mkdir()
    declared = judge_folder(submissions / "pair", FEATURES, study(yard))
    write_text(place / "verdicts" / "pair.json", replace(declared, verdict="verified", seed=5).to_json())
    made = build(yard / "kept", submissions, place / "verdicts", place / "site", FEATURES)
    return place, made


def test_sound_entries_are_shown_and_the_others_named_with_the_reason(built):
    _, made = built
    assert made.entries == {"pair": "verified"}
    assert "disagree about 10 pictures" in made.left_out["raised"]
    assert "the hits of pair" in made.left_out["copy"]
    assert "lacks about.toml" in made.left_out["stray"]
    text = made.page.read_text()
    assert "1 verified" in text
    assert "3 refused" in text
    assert "<i>pair" not in text
    assert "disagree about 10 pictures" in text


def test_the_figures_are_those_of_the_records(built, yard):
    data = embedded_data(built[1].page)
    method = next(method for method in data["methods"] if method["key"] == "pair")
    import base64

    shown = np.frombuffer(base64.b64decode(method["accuracy"]), "<f4")
    table = load_records(yard / "submissions" / "pair" / "records").records
    assert sorted(shown.tolist()) == pytest.approx(sorted(100 * v for v in table["accuracy"].to_pylist()), abs=1e-4)
    assert data["entries"]["pair"] == ["verified", "entries/pair/index.html"]
    assert data["entries"]["clap"] == ["kshot", ""]
    assert {"accuracy", "nll", "brier", "ece"} <= data["metrics"].keys()


def test_a_verdict_on_other_files_counts_for_nothing(built, yard, tmp_path):
    place, _ = built
    verdict = json.loads((place / "verdicts" / "pair.json").read_text())
    write_text(tmp_path / "verdicts" / "pair.json", json.dumps(verdict | {"digest": "0" * 64}))
    (tmp_path / "submissions").mkdir()
    shutil.copytree(place / "submissions" / "pair", tmp_path / "submissions" / "pair")
    made = build(yard / "kept", tmp_path / "submissions", tmp_path / "verdicts", tmp_path / "site", FEATURES)
    assert made.entries == {"pair": "declared"}


def test_an_entry_s_page_has_answers_tables_and_an_archive_that_checks(built, yard, tmp_path):
    folder = built[1].page.parent / "entries" / "pair"
    text = (folder / "index.html").read_text()
    for words in ("A. Tester, B. Tester", "values of a publication", "cifar10", "--recompute 20 --seed 5", "pair.tar"):
        assert words in text
    assert "<i>pair" not in text
    run = CliRunner()
    with chdir(tmp_path):
        assert run.invoke(app, ["records", "unpack", str(folder / "pair.tar"), "submissions"]).exit_code == 0
        command = ["board", "check", "submissions/pair", "--study", str(yard / "small.toml")]
        done = run.invoke(app, [*command, "--features", str(FEATURES)])
    assert done.stdout == "pair: declared\n"


def test_regimes_follow_zero_shot_accuracy_and_classes(yard):
    found = load_records(yard / "kept").panel
    names = regimes(found)
    for dataset, text in (("cifar10", "strong, from 50 %"), ("tuxpaint", "medium, 25 to 50 %")):
        assert set(names["text"][found.dataset == dataset]) == {text}
    assert set(names["classes"]) == {"up to 10"}


def test_a_change_may_add_one_submission_and_nothing_else():
    assert added_submission("A\0submissions/x/about.toml\0A\0submissions/x/entry.json\0") == "x"
    for listing in (
        "",
        "M\0submissions/x/about.toml\0",
        "A\0submissions/x/a\0A\0submissions/y/a\0",
        "A\0submissions/x/a\0A\0src/kshot/x.py\0",
        "A\0submissions/..x/a\0",
        "A\0submissions/x\0",
    ):
        with pytest.raises(ValueError, match="add one folder"):
            added_submission(listing)
