"""The findings by strength of text, and the order of encoders, on records whose means are set by hand."""

import numpy as np
import pytest

from kshot.report.context import Context
from kshot.report.figures import plot
from kshot.report.tables import make_table
from kshot.stats.panel import panel
from synthetic_records import as_table, synthetic_rows

HEADS = ("zero_shot", "ncm", "js_blend", "loo_blend", "clap", "lpp", "gauss_probe", "oracle_lambda")
ENCODERS = ("RN50", "ViT-B-32", "ViT-L-14")


def records(accuracy, datasets=("alpha", "beta"), backbones=ENCODERS, shots=(1, 2, 4)):
    """Records in which `accuracy(dataset, backbone, method)` per cent of 100 pictures are right."""
    rows = synthetic_rows(datasets, backbones, ("dataset",), shots, (0, 1), HEADS)
    for row in rows:
        if row["status"] == "ok":
            right = accuracy(row["dataset"], row["backbone"], row["method"])
            hits = np.arange(100) < right
            row |= {"n_test": 100, "accuracy": right / 100, "n_correct": right, "hits": np.packbits(hits).tobytes()}
    return panel(as_table(rows))


def graded(dataset, backbone, method):
    """Text grows with the encoder, and James–Stein's loss with it; the probe is two points above the oracle."""
    text = 50 + 10 * ENCODERS.index(backbone)
    return {"zero_shot": text, "ncm": 45, "js_blend": 75 - text // 2, "clap": 82}.get(method, 80)


def test_strata_stand_in_the_order_of_their_text_and_ranks_follow():
    table = make_table("text_strength", records(graded))
    strata = [line[0].split(", ")[1] for line in table.texts()[:6]]
    assert strata == [encoder for encoder in ENCODERS for _ in range(2)]
    names = list(table.columns)
    line = dict(zip(names, table.texts()[0], strict=True))
    assert float(line["zero-shot %"]) == 50
    assert line["text's strength"] == "+5.0"
    assert line["CLAP"] == "+2.00"
    assert line["James–Stein blend"] == "−30.00"
    ranks = dict(zip(names, table.texts()[-1], strict=True))
    assert ranks["James–Stein blend"].startswith("−1.00")


def test_weaker_and_stronger_text_are_averaged_with_encoders_of_a_set_as_one_cluster():
    lines = {line[0]: line for line in make_table("text_strength", records(graded)).texts()}
    assert lines["weaker text: 2 strata"][5].startswith("+2.00")
    assert lines["stronger text: 4 strata"][3].startswith("−37.50")


def test_one_encoder_has_no_strength_to_compare():
    alone = make_table("text_strength", records(lambda d, b, m: 50, backbones=("RN50",)))
    assert not alone.rows
    assert "two backbones" in alone.caption


def test_a_head_that_turns_the_encoders_over_has_rank_correlation_minus_one():
    def turned(dataset, backbone, method):
        place = ENCODERS.index(backbone)
        return 70 - 5 * place if method == "clap" else 50 + 5 * place

    table = make_table("encoder_order", records(turned))
    lines = {line[0]: line for line in table.texts()}
    assert lines["CLAP, K=1"][-2:] == ("RN50", "−1.00")
    assert lines["LP++, K=4"][-2:] == ("ViT-L-14", "+1.00")
    assert lines["Zero-shot"][1:4] == ("50.0", "55.0", "60.0")


def test_the_figure_draws_the_numbers_of_the_table():
    axis = plot(records(graded), Context(), "text_strength").axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in axis.get_lines() if len(line.get_xdata()) == 6}
    assert drawn["CLAP"] == pytest.approx([2.0] * 6)
    assert drawn["James–Stein blend"] == pytest.approx([-30, -30, -35, -35, -40, -40])
