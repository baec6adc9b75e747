"""Records as a value: asked, filtered, handed to other libraries, reported."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kshot
from kshot.errors import StudyError
from kshot.report import tables
from kshot.results import load_records

OPEN = Path(__file__).resolve().parents[1] / "docs" / "open" / "records"


@pytest.fixture(scope="module")
def results():
    return load_records(OPEN)


def mean(frame, method, **wanted):
    rows = frame[(frame.method == method) & (frame.tier == "dataset")]
    for name, values in wanted.items():
        rows = rows[rows[name].isin(values)]
    return 100 * rows.accuracy.mean()


def test_the_leaderboard_is_the_mean_of_the_records(results):
    frame, board = results.to_pandas(), results.leaderboard().to_pandas().set_index("method")
    for key, title in (("clap", "CLAP"), ("ncm", "NCM"), ("oracle_lambda", "Oracle ratio")):
        for shots in (1, 2, 4, 8, 16):
            assert board.loc[title, f"k{shots}"] == pytest.approx(mean(frame, key, shots=[shots]))


def test_a_paired_difference_is_a_value(results):
    gap, frame = results.paired("clap", "ncm", cells="all"), results.to_pandas()
    assert gap.mean == pytest.approx(mean(frame, "clap") - mean(frame, "ncm"))
    assert (gap.n, gap.G) == (175, 7)
    assert gap.low < gap.mean < gap.high
    assert f"{gap.mean:+.2f} [" in str(gap)
    assert "<td>175</td><td>7</td>" in gap._repr_html_()
    with pytest.raises(StudyError, match="Did you mean clap"):
        results.paired("clapp", "ncm")


def test_a_paired_difference_is_that_of_the_leaderboard_unless_all_cells_are_asked_for(results):
    part = results.where(tier="dataset", method=["clap", "loo_blend", "ncm"])
    board = part.leaderboard().to_pandas().set_index("method")
    # The LOO blend is undefined at K = 1, so the leaderboard's mean begins at 2; the other two exist there, too.
    gap = part.paired("clap", "ncm")
    assert gap.over == "K = 2, 4, 8, 16"
    assert gap.mean == pytest.approx(board.loc["CLAP", "mean"] - board.loc["NCM", "mean"])
    whole = part.paired("clap", "ncm", cells="all")
    assert whole.over == "K = 1, 2, 4, 8, 16"
    assert (whole.n, gap.n) == (175, 140)
    assert whole.mean != pytest.approx(gap.mean, abs=1e-6)


def test_a_curve_is_the_sweep_that_chose_the_ratio(results):
    frame = results.where(tier="dataset", dataset="digits").curve("loo_lambda").to_pandas()
    cells = frame.groupby(["backbone", "shots", "seed"])
    assert len(cells) == 4 * 5, "K = 1 leaves no shot out"
    chosen = results.where(tier="dataset", dataset="digits", method="loo_blend").to_pandas()
    chosen = chosen.set_index(["backbone", "shots", "seed"]).selected
    for place, cell in cells:
        assert (cell["lambda"].min(), cell["lambda"].max()) == (0, 1)
        kept = json.loads(chosen.loc[place])["lambda"]
        assert cell.accuracy[np.isclose(cell["lambda"], kept)].item() == cell.accuracy.max()
    with pytest.raises(StudyError, match="ncm keeps no curve"):
        results.curve("ncm")


def test_probes_of_features_in_memory_are_those_of_stored_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y, text = np.repeat(np.arange(4), 12), np.eye(4, 16)
    X, Z = (text[y] + 0.3 * rng.normal(size=(48, 16)) for _ in range(2))
    made = kshot.Features.from_arrays("mine", pool=(X, y), test=(Z, y), text=text)
    found = kshot.probe(made, shots=[2, 4], seeds=3, workers=1)
    assert not list(tmp_path.iterdir()), "nothing is stored"
    made.save("features")
    stored = kshot.probe(f"mine/{made.backbone}/{made.tiers[0]}", shots=[2, 4], seeds=3, workers=1)
    assert stored.equals(found)
    values = found.to_pandas().set_index(["quantity", "shots", "seed"]).value
    unit, T = X / np.linalg.norm(X, axis=1, keepdims=True), text
    offset = np.mean([unit[y == c].mean(axis=0) - T[c] for c in range(4)], axis=0)
    assert values["offset.length", 0, -1] == pytest.approx(np.linalg.norm(offset), rel=1e-4)
    assert values["spread.draws", 4, -1] == 3
    assert {seed for name, _, seed in values.index if name.startswith("per_class")} == {0, 1, 2}


@pytest.mark.parametrize("call", [kshot.compare, kshot.run, kshot.judge])
@pytest.mark.parametrize(
    ("old", "new"), {"engine": "backend", "min_residue": "least_left", "method": "heads", "verify": "nothing"}.items()
)
def test_a_word_of_before_is_refused_with_the_new_one(call, old, new):
    with pytest.raises(TypeError, match=rf"{call.__name__}\(\) got an unexpected keyword argument '{old}'; .* {new}"):
        call("clap", "embedded", **{old: 1}) if call is not kshot.run else call("embedded", **{old: 1})


def test_features_without_any_text_are_compared_all_the_same():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 12)
    X = np.eye(4, 16)[y] + 0.4 * rng.normal(size=(48, 16))
    made = kshot.Features.from_arrays("dino", pool=(X, y), test=(X + 0.4 * rng.normal(size=X.shape), y))
    found = kshot.compare(["ncm", "logistic_probe", "clap"], made, shots=[2, 4], seeds=3, workers=1)
    frame, board = found.to_pandas(), found.leaderboard().to_pandas().set_index("method")
    means = 100 * frame.pivot_table(index=["shots", "seed"], columns="method", values="accuracy")
    assert board.loc["NCM", "k2"] == pytest.approx(means.ncm.loc[2].mean())
    assert board.loc["NCM", "mean"] == pytest.approx(means.ncm.mean())
    assert np.isnan(board.loc["CLAP", "k2"])
    gap = found.paired("logistic_probe", "ncm")
    assert (gap.n, gap.mean) == (6, pytest.approx((means.logistic_probe - means.ncm).mean()))
    assert found.verdict()[0].startswith("Use ")


def test_where_keeps_what_was_asked_for_everywhere(results, tmp_path):
    part = results.where(dataset=["digits", "emoji"], shots=[4, 16], method=["clap", "ncm", "oracle_lambda"])
    frame, board = results.to_pandas(), part.leaderboard().to_pandas().set_index("method")
    assert set(board.index) == {"CLAP", "NCM", "Oracle ratio"}
    expected = mean(frame, "clap", dataset=["digits", "emoji"], shots=[16])
    assert board.loc["CLAP", "k16"] == pytest.approx(expected)
    assert part.to_polars().height == part.to_arrow().num_rows == 2 * 3 * 2 * 5 * 3
    page = part.where(tier="dataset").report(tmp_path).page.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert {cell["names"][0] for cell in data["cells"]} == {"digits", "emoji"}
    assert "only dataset digits, emoji" in page
    with pytest.raises(StudyError, match="unknown shots '3'"):
        results.where(shots=3)
    with pytest.raises(StudyError, match="no record has all of this"):
        results.where(tier="photo", method="fold_gda")
    with pytest.raises(StudyError, match="Did you mean digits"):
        results.where(dataset="digit")


def test_one_table_is_all_that_is_made(monkeypatch):
    def refuse(*_):
        raise AssertionError("nobody asked for this")

    lone = dict.fromkeys(tables.TABLES, refuse) | {"headline": tables.TABLES["headline"]}
    monkeypatch.setattr(tables, "TABLES", lone)
    monkeypatch.setattr("kshot.theory.probes.sketch.sketches", refuse)
    monkeypatch.setattr("kshot.theory.probes.ratio.stored_headroom", refuse)
    assert load_records(OPEN, headroom=True).table("headline").rows


def test_a_notebook_sees_a_table_and_no_file_is_written(results):
    assert results._repr_html_().startswith("<table>")
    assert "Leaderboard" in repr(results)
    assert not (OPEN / "report").exists()


def test_frames_that_are_absent_are_named_with_the_command(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    for give in (results.to_pandas, results.to_polars, results.leaderboard().to_pandas):
        with pytest.raises(kshot.errors.KshotError, match=r"pip install 'kshot\[frames\]'"):
            give()


CELL = """import kshot
records = kshot.run(STUDY)
board = records.leaderboard()
frame = board.to_pandas()
"""


@pytest.mark.parametrize("study", ["'tiny.toml'", "kshot.load_study('tiny.toml')"])
def test_a_notebook_cell_from_import_to_a_pandas_leaderboard(tmp_path, study):
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\ndatasets = ["digits", "tuxpaint"]\nbackbones = ["lite0"]\ntiers = ["dataset"]\n'
        'shots = [1, 2]\nseeds = [0]\nmethods = ["zero_shot", "ncm"]\n'
    )
    assert len(CELL.splitlines()) <= 6
    # A kernel gives its cells no file to start workers from, as `python -c` does.
    program = CELL.replace("STUDY", study) + "print(sorted(frame['method']), frame['k1'].notna().any())"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "'NCM'" in done.stdout
    assert "True" in done.stdout
