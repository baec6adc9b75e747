"""From submit to verdict: the honest head is verified, those that cheat are refused with the reason."""

import shutil
from datetime import date

import numpy as np
import pytest
from kshot.bench.isolation import can_isolate
from kshot.board.about import blank_about, parse_about
from kshot.board.recompute import Trial, _suspicions, chosen_cells
from kshot.board.rules import open_board
from kshot.board.submission import read_submission
from kshot.board.verdict import Recomputation, judge_folder, read_verdict
from kshot.board.wheel import write_wheel

from board_yard import FEATURES, edit_answers, raise_results, study, submission_of
from kshot.bench.records import load_table
from kshot.data.store import Store
from kshot.data.stratum import load_stratum
from kshot.errors import KshotError
from kshot.files import write_text
from kshot.methods.registry import source_files

DAY = date(2026, 11, 18)
isolated = pytest.mark.skipif(not can_isolate(), reason="bubblewrap cannot make namespaces here")


def verdict_on(yard, folder, cells=0, **given):
    again = Recomputation(cells, seed=1, workers=2) if cells else None
    return judge_folder(folder, FEATURES, study(yard), again=again, day=DAY, **given)


@pytest.fixture
def copied(yard, tmp_path):
    return shutil.copytree(yard / "submissions" / "pair", tmp_path / "pair")


def test_an_honest_submission_is_declared_and_its_form_is_complete(yard):
    found = verdict_on(yard, yard / "submissions" / "pair")
    assert (found.verdict, found.reasons) == ("declared", ())
    files = read_submission(yard / "submissions" / "pair").files
    assert sum("answers" in name for name in files) == 8
    assert not [name for name in files if not name.endswith((".toml", ".json", ".parquet", ".whl"))]


@isolated
def test_a_recomputed_one_is_verified_and_the_file_is_kept(yard, tmp_path):
    found = verdict_on(yard, yard / "submissions" / "pair", cells=1)
    assert (found.verdict, found.reasons, len(found.cells)) == ("verified", (), 1)
    write_text(tmp_path / "pair.json", found.to_json())
    assert read_verdict(tmp_path / "pair.json") == found


@isolated
@pytest.mark.ci
def test_the_verdict_is_the_same_each_time_and_the_seed_draws_the_cells(yard):
    first, second = (verdict_on(yard, yard / "submissions" / "pair", cells=2) for _ in range(2))
    assert first.verdict == "verified"
    assert first.to_json() == second.to_json()
    rows = load_table(yard / "submissions" / "pair" / "records").to_pylist()
    assert chosen_cells(rows, 4, 1) != chosen_cells(rows, 4, 2)


@isolated
@pytest.mark.ci
@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("FrameReader", "without test labels"),
        ("DiskReader", "without test labels"),
        ("ByHeart", "with the classes renumbered it loses"),
        ("Surer", "the probabilities of"),
        ("AboveItsKnob", "above the best value of its own knob"),
    ],
)
def test_cheats_are_declared_and_refused_when_they_are_run_again(yard, head, reason):
    if head == "ByHeart":
        tests = [load_stratum(Store(FEATURES), name, "lite0").test for name in ("cifar10", "tuxpaint")]
        answers = {float(x[0]): int(y) for test in tests for x, y in zip(test.X, test.y, strict=True)}
        (yard / "strange_answers.py").write_text(f"ANSWERS = {answers}\n")
    folder = submission_of(yard, head, head.lower())
    try:
        assert verdict_on(yard, folder).verdict == "declared"
        found = verdict_on(yard, folder, cells=3)
        assert found.verdict == "refused"
        assert any(reason in why for why in found.reasons), found.reasons
    finally:
        shutil.rmtree(folder)


def test_edited_files_and_edited_results_are_refused(yard, copied):
    (path,) = (copied / "records" / "compact").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "was changed after it was written" in verdict_on(yard, copied).reasons[0]


@isolated
@pytest.mark.ci
def test_results_that_were_raised_everywhere_are_not_those_of_the_wheel(yard, copied):
    raise_results(copied, with_answers=True)
    assert verdict_on(yard, copied).verdict == "declared"
    found = verdict_on(yard, copied, cells=2)
    assert found.verdict == "refused"
    assert "10 of" in found.reasons[0]


def test_few_edited_answers_in_every_cell_add_up(yard):
    trials = [Trial(cell, (), 1, 420) for cell in open_board(study(yard), FEATURES).cells]
    assert _suspicions(trials[:1]) == []
    assert _suspicions(trials) == ["8 of 3360 answers in 8 cells differ from the kept ones"]


def test_a_machine_that_cannot_isolate_gives_no_verdict(yard, monkeypatch):
    monkeypatch.setattr("kshot.board.verdict.can_isolate", lambda: False)
    with pytest.raises(KshotError, match="bubblewrap"):
        verdict_on(yard, yard / "submissions" / "pair", cells=1)


def test_impossible_probabilities_are_refused(yard, copied):
    import pyarrow as pa

    def surer(table):
        index = table.column_names.index("squares")
        return table.set_column(index, "squares", pa.array(np.full(len(table), 0.01, np.float16)))

    edit_answers(copied, surer)
    assert "no probabilities give" in verdict_on(yard, copied).reasons[0]


def test_a_copy_of_another_entry_and_of_a_head_of_kshot_is_refused(yard, tmp_path):
    shutil.copytree(yard / "submissions" / "pair", tmp_path / "pair")
    twin = shutil.copytree(yard / "submissions" / "pair", tmp_path / "twin")
    found = verdict_on(yard, twin, kept=[yard / "kept"])
    assert found.reasons == ("in 8 of 8 cells it has the hits of pair, picture by picture",)
    clap = submission_of(yard, "Outside", "outside-clap")
    found = verdict_on(yard, clap, kept=[yard / "kept"])
    shutil.rmtree(clap)
    assert found.reasons == ("in 8 of 8 cells it has the hits of clap, picture by picture",)


def test_the_form_asks_every_question_and_a_blank_one_is_refused():
    with pytest.raises(KshotError, match=r"about\.toml: name"):
        parse_about(blank_about())


def test_the_same_sources_make_the_same_wheel(yard, tmp_path, monkeypatch):
    monkeypatch.chdir(yard)
    for name in ("one", "two"):
        write_wheel(tmp_path / f"{name}.whl", "yard_heads", source_files("yard_heads:Pair"))
    assert (tmp_path / "one.whl").read_bytes() == (tmp_path / "two.whl").read_bytes()


def test_records_that_are_not_there_are_an_error_and_no_verdict(yard, tmp_path):
    with pytest.raises(KshotError, match="nowhere"):
        verdict_on(yard, yard / "submissions" / "pair", kept=[tmp_path / "nowhere"])
