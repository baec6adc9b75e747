import re
from dataclasses import replace

import pytest

from kshot.bench.study import Cell, bundled_studies, find_study, load_study, parse_study, study_from_json
from kshot.errors import KshotError, StudyError

GRID = {
    "datasets": ["a", "b"],
    "backbones": ["x"],
    "tiers": ["photo"],
    "shots": [1, 2],
    "seeds": [0, 1, 2],
    "methods": ["ncm"],
}


def study(**changes):
    return parse_study({"name": "s"} | GRID | changes, "s.toml")


def test_cells_are_all_combinations():
    cells = study().cells()
    assert len(cells) == 2 * 2 * 3
    assert Cell("b", "x", "photo", 2, 1) in cells


def test_grids_meet_in_a_cell_and_join_their_methods():
    both = study(grid=[{}, {"methods": ["zero_shot"], "shots": [2, 4]}]).cells()
    assert len(both) == 2 * 3 * 3
    assert [spec.name for spec in both[Cell("a", "x", "photo", 2, 0)]] == ["ncm", "zero_shot"]
    assert [spec.name for spec in both[Cell("a", "x", "photo", 4, 0)]] == ["zero_shot"]


def test_json_round_trip():
    original = study(methods=["ncm", {"use": "loo_blend", "as": "lenient", "allow_single": True}])
    changed = replace(original, least_left=2, drop_thin=True, answers=False, pool_cap=9, supports='{"a": {}}')
    for whole in (original, changed):
        assert study_from_json(whole.to_json()) == whole
    assert original.methods()["lenient"].params == {"allow_single": True}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shots": []}, "'shots' must be a list with at least one entry"),
        ({"shots": [0]}, "whole numbers from 1 up"),
        ({"seeds": [1.5]}, "whole numbers from 0 up"),
        ({"seeds": [True]}, "whole numbers"),
        ({"dtype": "float16"}, "allowed are float32 and float64"),
        ({"metods": ["ncm"]}, "unknown key 'metods'. Did you mean methods"),
        ({"datasets": ["../etc"]}, "cannot be a file name"),
        ({"name": 3}, "needs a name"),
        ({"methods": [{"as": "x"}]}, "needs use"),
        ({"methods": [{"use": "ncm", "scale": 2}]}, "a name as"),
        ({"grid": [{"colour": [1]}]}, "unknown key 'colour'"),
        ({"grid": {"shots": [1]}}, r"\[grid\] is not a list of grids. Write \[\[grid\]\]"),
        ({"grid": 3}, r"grid = 3 is not a list of grids. Write \[\[grid\]\]"),
        ({"grid": [3]}, "is not a list of grids"),
        ({"grid": []}, "is not a list of grids"),
        ({"methods": [3]}, "'methods' must be names in quotes or .*, not 3"),
        ({"methods": [{"use": "ncm", "as": 3}]}, "a name as"),
        ({"datasets": [1]}, "'datasets' must be names in quotes, not 1"),
        ({"tiers": [["photo"]]}, "'tiers' must be names in quotes"),
        ({"seeds": [5_000_000_000]}, "whole numbers from 0 up to 2147483647"),
        ({"shots": [2**31]}, "whole numbers from 1 up to 2147483647"),
        ({"profiles": ["long-tail"]}, "Did you mean long-tailed"),
        ({"profiles": []}, "'profiles' must be a list with at least one entry"),
        ({"views": "tip"}, "write views = "),
        ({"views": {"recipe": "tip"}}, "write views = "),
        ({"views": {"recipe": "tip", "count": 0}}, "write views = "),
        ({"views": {"recipe": "tpi", "count": 3}}, "Did you mean tip"),
        ({"least_left": -1}, "'least_left' must be a whole number from 0 up"),
        ({"least_left": 2.5}, "'least_left' must be a whole number from 0 up"),
        ({"min_residue": 2}, "'min_residue' is called least_left now"),
        ({"drop_thin": 1}, "'drop_thin' must be true or false, not 1"),
        ({"pool_cap": True}, "'pool_cap' must be a whole number from 1 up"),
        ({"answers": 3}, "'answers' must be true or false, not 3"),
    ],
)
def test_mistakes_are_sentences(changes, message):
    with pytest.raises(KshotError, match=message):
        study(**changes)


STRICT = {"use": "loo_blend", "as": "x", "allow_single": False}
LENIENT = {"use": "loo_blend", "as": "x", "allow_single": True}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (STRICT, LENIENT, "'x': loo_blend with {'allow_single': False}, and loo_blend with {'allow_single': True}"),
        ({"use": "ncm", "as": "zero_shot"}, "zero_shot", "'zero_shot': ncm, and zero_shot"),
    ],
)
def test_one_name_for_two_methods_is_refused(first, second, both):
    """Records keep the name only: the second would silently take the place of the first."""
    with pytest.raises(StudyError, match=re.escape(both)):
        study(methods=[first, second])
    with pytest.raises(StudyError, match=re.escape(both)):
        study(methods=[first], grid=[{}, {"methods": [second], "seeds": [9]}])
    if isinstance(second, str):
        with pytest.raises(StudyError, match=re.escape(both)):
            study(methods=[first]).with_methods([second])


def test_the_same_method_may_be_named_again():
    again = study(methods=[LENIENT, "ncm"], grid=[{}, {"seeds": [9], "methods": [LENIENT, {"use": "ncm"}]}])
    assert again.with_methods(["ncm"]) == again


def test_files(tmp_path):
    with pytest.raises(StudyError, match="unknown study file"):
        load_study(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(StudyError, match="not valid TOML"):
        load_study(tmp_path / "bad.toml")


@pytest.mark.parametrize("name", sorted(bundled_studies()))
def test_a_study_of_the_package_has_the_name_it_is_found_by(name):
    assert load_study(name).name == name == find_study(name).stem


def test_the_package_has_the_studies_of_the_docs():
    assert {"embedded", "open", "paper", "simulated-small"} <= set(bundled_studies())


def test_a_mistyped_study_name_is_answered_with_the_nearest():
    with pytest.raises(StudyError, match=r"unknown study file 'embeded'.*Did you mean embedded\?"):
        load_study("embeded")


def test_a_file_comes_before_a_study_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "embedded").write_text(find_study("embedded").read_text().replace('"embedded"', '"mine"'))
    assert load_study("embedded").name == "mine"


PAPER_STUDIES = ("paper", "tiers", "siglip2", "coop", "precision", "augmentation", "textfree")


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_arms_keep_the_papers_protocol_to_the_letter(name):
    methods = load_study(name).methods()
    if "clap" in methods:
        assert methods["clap"].params == {"anchor_scale": 10.0}
    if "hoso" in methods:
        assert methods["hoso"].params == {"refit": False}


def test_arms_are_paired_with_the_matrix_draw_by_draw():
    matrix = set(load_study("paper").cells())
    for name in ("tiers", "precision", "augmentation", "paper-ours"):
        assert set(load_study(name).cells()) <= matrix, name


def test_the_precision_arm_has_eight_strata_in_float64():
    study = load_study("precision")
    assert len({(cell.dataset, cell.backbone) for cell in study.cells()}) == 8
    assert study.dtype == "float64"


def test_the_second_study_says_what_is_ours():
    methods = load_study("paper-ours").methods()
    assert methods["hoso_refit"].use == "hoso"
    assert methods["clap_text_norm"].use == "clap"
    assert not methods["hoso_refit"].params
