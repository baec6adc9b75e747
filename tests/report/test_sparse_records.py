"""Every table, figure and sentence of a report on records that are not a full grid."""

import json
import re
from functools import cache, partial

import numpy as np
import pytest

import synthetic_records
from kshot.report.context import Context, Probed
from kshot.report.embed import as_script, embedded
from kshot.report.figures import FIGURES
from kshot.report.figures.style import styled
from kshot.report.questions import five_questions
from kshot.report.table import ABSENT, Number
from kshot.report.tables import TABLES, make_table
from kshot.report.verdict import findings, verdict
from kshot.stats.panel import panel
from synthetic_records import SEES, as_table

pytestmark = pytest.mark.usefixtures("few_resamples")
READ_THE_CONTEXT = ("metrics", "headline", "strata", "probes", "precision")
WORDS_OF_NOTHING = re.compile(
    r"\bnan\b|\binf\b|K ?= ?0\b|\b0 (cells|datasets|dataset\(s\)|seeds|strata|draws)\b|G = 0\b|"
    r"\b(on|tier) ([,;.]|$)",
    re.IGNORECASE,
)


def failed(rows, *methods):
    return [
        row
        | {"status": "failed", "reason": "ValueError: no", "accuracy": None, "n_correct": None}
        | {"hits": b"", "selected": "{}", "selected_from": "{}"}
        if row["method"] in methods
        else row
        for row in rows
    ]


def own(rows, name="my_method:AnchoredRidge", title="Anchored ridge (ours)"):
    """The rows, and an own method that is a little better than CLAP."""
    return [*rows, *(row | {"method": name, "title": f"{title} ({name})"} for row in rows if row["method"] == "clap")]


def without_text(rows):
    return [row | dict.fromkeys(("lambda_js", "d2", "v", "share")) for row in rows]


# Fewer seeds and resamples than elsewhere: what is asked here is what is said, not how sure it is.
synthetic_rows = partial(synthetic_records.synthetic_rows, seeds=(0, 1))
FULL = synthetic_rows()
BY_NAME = {
    "the full grid": FULL,
    "one dataset": synthetic_rows(datasets=("alpha",)),
    "two datasets": synthetic_rows(datasets=("alpha", "beta")),
    "one K": synthetic_rows(shots=(2,)),
    "K = 1": synthetic_rows(shots=(1,)),
    "one seed": synthetic_rows(seeds=(0,)),
    "one cell": synthetic_rows(("alpha",), ("ViT-B-16",), ("dataset",), (4,), seeds=(0,)),
    "a tier for each backbone": [row for row in FULL if (row["backbone"] == "ViT-B-16") == (row["tier"] == "photo")],
    "the atlas": synthetic_rows(("alpha", "beta"), ("lite0",), ("dataset",), (2, 4, 16), seeds=(0,))
    + synthetic_rows(("gamma",), ("ViT-B-16",), ("text",), (2,), seeds=(0,)),
    "a dataset that ends early": [row for row in FULL if (row["dataset"], row["shots"]) != ("beta", 16)],
    "no dataset at every K": [row for row in FULL if row["shots"] == {"alpha": 2, "beta": 4}.get(row["dataset"])],
    "a dataset on one backbone": [row for row in FULL if row["dataset"] != "beta" or row["backbone"] == "RN50"],
    "zero-shot failed everywhere": failed(FULL, "zero_shot"),
    "the oracle failed everywhere": failed(FULL, "oracle_lambda"),
    "CLAP failed everywhere": failed(FULL, "clap"),
    "the blends failed everywhere": failed(FULL, "js_blend", "loo_blend"),
    "everything failed": failed(FULL, *SEES),
    "everything failed on one dataset": [row for row in FULL if row["dataset"] != "beta"]
    + failed([row for row in FULL if row["dataset"] == "beta"], *SEES),
    "a method without text": synthetic_rows(methods=("logistic_probe",)),
    "zero-shot alone": synthetic_rows(methods=("zero_shot",)),
    "the oracle alone": synthetic_rows(methods=("oracle_lambda",)),
    "no text": synthetic_rows(backbones=("DINO",), text_free=("DINO",)),
    "a backbone without text": synthetic_rows(backbones=("ViT-B-16", "DINO"), text_free=("DINO",)),
    "an imported dataset without text": [row for row in FULL if row["dataset"] != "beta"]
    + failed(
        without_text([row for row in FULL if row["dataset"] == "beta"]),
        *(method for method, sees in SEES.items() if "text" in sees),
    ),
    "an own method": own(FULL),
    "an own method that failed": failed(own(FULL), "my_method:AnchoredRidge"),
}


def rich_context(made):
    """With headroom and probes of every stratum, and of one that the records lack."""
    strata = {*zip(made.dataset.tolist(), made.backbone.tolist(), made.tier.tolist(), strict=True)}
    strata.add(("elsewhere", "ViT-B-16", "dataset"))
    rng = np.random.default_rng(0)
    quantities = ("headroom.headroom", "headroom.path/full", "translation.a = -0.50", "translation.a = +0.50")
    values = {name: {(*s, 0, -1, "balanced"): float(rng.uniform()) for s in sorted(strata)} for name in quantities}
    values["spread.measured SD"] = {(*s, 2, -1, "balanced"): float(rng.uniform()) for s in sorted(strata)}
    return Context(
        headroom={s[:2]: float(rng.uniform()) for s in sorted(strata)},
        probed=Probed(values),
        measured={"accuracy": made},
        other_precision=made,
        corrected=True,
    )


@cache
def panel_of(name):
    return panel(as_table(BY_NAME[name]))


@pytest.fixture(params=BY_NAME, ids=lambda name: name.replace(" ", "-"))
def made(request):
    return panel_of(request.param)


def is_known(cell):
    """How many there are of nothing is no figure."""
    return cell.mean == cell.mean and (cell.spec not in ("d", ",d") or cell.mean)


def test_a_table_has_figures_or_its_reason(made):
    rich, plain = rich_context(made), Context()
    cases = [(key, rich) for key in TABLES] + [(key, plain) for key in READ_THE_CONTEXT]
    for key, context in cases:
        table = make_table(key, made, context)
        for shown in (table.markdown(), table.csv()):
            assert not WORDS_OF_NOTHING.search(shown), shown
        if table.rows:
            assert any(is_known(cell) for row in table.rows for cell in row[1:] if isinstance(cell, Number)), table
        else:
            assert re.search(r"[a-z]{3}.*\.$", table.caption), (key, table.caption)
            if re.search(r"no cell .*text", table.caption):
                assert not np.isfinite(made.d2).any()


def test_a_figure_is_drawn_or_says_why_not(made):
    from matplotlib.text import Text

    rich, plain = rich_context(made), Context()
    for name, context in [(name, rich) for name in FIGURES] + [(name, plain) for name in ("headroom", "geometry")]:
        with styled():
            drawn = FIGURES[name](made, context)
            if isinstance(drawn, str):
                assert len(drawn) > 10
                assert not WORDS_OF_NOTHING.search(drawn), drawn
                continue
        for text in drawn.findobj(Text):
            assert not WORDS_OF_NOTHING.search(text.get_text()), (name, text.get_text())
        assert any(axis.has_data() for axis in drawn.axes), name


def test_sentences_are_whole_and_the_page_carries_the_records(made):
    for sentence in verdict(made, [name for name in made.methods if ":" in name]):
        assert not WORDS_OF_NOTHING.search(sentence), sentence
        assert not re.search(rf"(^|\s){ABSENT}([\s,.;]|$)", sentence), sentence
    for method in made.methods:
        table, answers = five_questions(made, method, None)
        for sentence in (*answers, table.markdown()):
            assert not WORDS_OF_NOTHING.search(sentence), sentence
    assert json.loads(as_script(embedded(made)))["cells"]


def told(name, own_methods=()):
    return " ".join(verdict(panel_of(name), own_methods))


def test_where_backbones_have_other_tiers_a_slice_is_one_that_exists():
    made = panel_of("the atlas")
    by_dataset, by_shots = (make_table(key, made) for key in ("per_dataset", "by_shots"))
    assert "K=16, lite0" in by_dataset.title
    assert by_dataset.columns == ("method", "alpha", "beta", "mean")
    assert [row[0] for row in by_shots.rows] == ["K=2", "K=4", "K=16", "all K pooled", "K≥2 pooled", "K≥4 pooled"]
    assert "no cell of tier dataset on lite0 with text: gamma" in by_dataset.caption


def test_one_dataset_speaks_of_itself_alone():
    """CLAP and LP++ differ by half a point of 400 pictures; from two draws no interval comes."""
    rows = synthetic_records.synthetic_rows(datasets=("alpha",), seeds=(0, 1, 2, 3))
    words = " ".join(verdict(panel(as_table(rows))))
    assert re.search(r"Use (CLAP|LP\+\+): .*; not told apart from it: (CLAP|LP\+\+)\.", words)
    assert "of 1 dataset; intervals over its draws and pictures" in words
    few = told("one dataset")
    assert "no interval tells it apart" in few
    assert "not told apart" not in few


def test_a_wide_interval_over_few_datasets_is_shown_with_its_reason():
    """NCM is 11 points behind on the mean, and the interval over three datasets holds zero."""
    behind = {"alpha": 0.02, "beta": 0.03, "gamma": 0.30}
    rows = synthetic_rows(tuple(behind), ("RN50",), ("dataset",), (2, 4), seeds=(0,), methods=("clap", "zero_shot"))
    ncm = [
        row | {"method": "ncm", "title": "NCM", "accuracy": row["accuracy"] - behind[row["dataset"]]}
        for row in rows
        if row["method"] == "clap"
    ]
    made = panel(as_table([*rows, *ncm]))
    assert any("Use CLAP" in line and "not told apart from it: NCM" in line for line in verdict(made))
    table = make_table("leaderboard", made)
    (behind_leader,) = (str(row[4]) for row in table.rows if row[0] == "NCM")
    assert re.fullmatch(r"−11\.67 \[−\d+\.\d+, \+\d+\.\d+\] ≈", behind_leader)
    assert "the interval over 3 datasets holds zero" in table.caption


@pytest.mark.parametrize(
    ("name", "dataset", "reason"),
    [
        ("a dataset that ends early", "beta", "without K=16"),
        ("the atlas", "gamma", "no cell of tier dataset"),
        ("an imported dataset without text", "beta", "with text"),
    ],
)
def test_a_dataset_that_is_left_out_is_named_and_not_counted(name, dataset, reason):
    made = panel_of(name)
    others = len(set(made.dataset.tolist())) - 1
    caption = make_table("leaderboard", made).caption
    left = next(part for part in caption.split(". ") if part.startswith("Left out"))
    assert dataset in left
    assert reason in left
    assert re.search(r"Not counted|Left out", told(name))
    assert f"cells of {others} dataset" in told(name)
    if reason != "with text":
        assert re.search(r"back with --(shots 1 --shots 2 --shots 4|tier \w+)", caption)


def test_an_own_method_bears_its_title_and_is_judged():
    made = panel_of("an own method")
    assert "my" not in make_table("leaderboard", made).latex()
    assert "Anchored ridge (ours) is better than the tuned ratio: +" in told(
        "an own method", ["my_method:AnchoredRidge"]
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_findings_are_short_and_the_verdict_fits_a_terminal(name):
    made = panel_of(name)
    for finding in findings(made, ["my_method:AnchoredRidge"]):
        assert len(finding.sentence.split()) <= 15
    lines = verdict(made)
    assert len([line for line in lines if not line.startswith(("Left out", "Failed", "Not counted"))]) <= 5
    assert all(len(line) <= 78 for line in lines[:5] if not line.startswith(("Left out", "Failed"))), lines


def test_two_methods_of_one_title_are_told_apart():
    rows = own(own(synthetic_rows()), "other:AnchoredRidge")
    titles = panel(as_table(rows)).titles
    assert titles["other:AnchoredRidge"] == "Anchored ridge (ours) (other:AnchoredRidge)"
    assert len(set(titles.values())) == len(titles)


def test_nobody_leads_where_nobody_has_a_mean():
    table = make_table("leaderboard", panel_of("everything failed on one dataset"))
    assert not table.rows
    assert "Failed records" in table.caption
