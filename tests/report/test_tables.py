"""Every table's figures again, in numpy written out from the rows."""

import json
import re

import numpy as np
import pytest
from scipy import stats

from kshot.report.context import Context, Gate
from kshot.report.tables import TABLES as EVERY
from kshot.report.tables import make_table
from kshot.stats.correlation import spearman
from kshot.stats.panel import panel
from synthetic_records import as_table, synthetic_rows

DATASETS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
ROWS = synthetic_rows(datasets=DATASETS, backbones=("ViT-B-16", "RN50", "DINO"), text_free=("DINO",))
TITLE = {row["method"]: row["title"] for row in ROWS}
CELL = ("dataset", "backbone", "tier", "shots", "seed")


class Tables(dict):
    """Tables of rows, each made when a test asks for it: a mutant of a table must be there before."""

    def __init__(self, rows=ROWS, context=None):
        self.panel, self.context = panel(as_table(rows)), context

    def __missing__(self, key):
        self[key] = make_table(key, self.panel, self.context)
        return self[key]


GATES = {"alpha": Gate("official", (10, 90)), "beta": Gate("self", (90, 95))}
TABLES = Tables(context=Context(gates=GATES, band_backbone="ViT-B-16", band_tier="photo"))


def select(value="accuracy", **wanted):
    """{cell: value} of the rows that match; per cent for accuracies."""
    scale = 100 if value == "accuracy" else 1
    return {
        tuple(row[name] for name in CELL): scale * row[value]
        for row in ROWS
        if all(row[k] in v if isinstance(v, set) else row[k] == v for k, v in wanted.items()) and row[value] is not None
    }


def difference(one, two):
    """Differences over shared cells and the dataset of each."""
    cells = sorted(one.keys() & two.keys())
    return np.array([one[c] - two[c] for c in cells]), np.array([c[0] for c in cells])


def expected(values, datasets, resamples=20_000):
    """Mean and Student-t interval by an independent bootstrap over indices."""
    names = sorted(set(datasets))
    sums = np.array([values[datasets == n].sum() for n in names])
    counts = np.array([np.count_nonzero(datasets == n) for n in names])
    drawn = np.random.default_rng(99).integers(len(names), size=(resamples, len(names)))
    error = (sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)).std(ddof=1)
    half = stats.t.ppf(0.975, len(names) - 1) * error
    return values.mean(), values.mean() - half, values.mean() + half


def numbers(cell):
    return [float(x.replace("−", "-")) for x in re.findall(r"[+−-]?\d+\.\d+", str(cell))]


def agrees(cell, values, datasets, digits=2):
    mean, low, high = expected(values, datasets)
    shown = numbers(cell)
    assert len(shown) == 3, cell
    assert shown[0] == pytest.approx(mean, abs=0.51 * 10**-digits)
    # 3 % of the half width is about four Monte Carlo errors of either bootstrap's standard error.
    slack = 0.03 * (high - low) / 2 + 0.51 * 10**-digits
    assert shown[1] == pytest.approx(low, abs=slack)
    assert shown[2] == pytest.approx(high, abs=slack)


def row(key, first):
    return next(r for r in TABLES[key].rows if r[0] == first)


TEXT = {"ViT-B-16", "RN50"}


def ratio(method, tier):
    """{cell: chosen ratio} of a tier."""
    return {
        tuple(r[n] for n in CELL): json.loads(r["selected"])["lambda"]
        for r in ROWS
        if r["method"] == method and r["tier"] == tier and r["status"] == "ok"
    }


def test_text_free():
    table = TABLES["text_free"]
    assert table.columns == ("shots", "DINO, Logistic probe", "ViT-B-16, Logistic probe")

    def by_draw(values):
        return {(d, k, s): v for (d, _, _, k, s), v in values.items()}

    for name, shots in (("K=2", {2}), ("K≥4 pooled", {4, 16})):
        bound = by_draw(select(method="oracle_lambda", tier="dataset", backbone="ViT-B-16", shots=shots))
        for j, backbone in ((1, "DINO"), (2, "ViT-B-16")):
            probe = by_draw(select(method="logistic_probe", tier="dataset", backbone=backbone, shots=shots))
            agrees(row("text_free", name)[j], *difference(probe, bound))
    assert "logistic_probe_test" in table.caption


def test_the_text_free_control_does_not_depend_on_how_tiers_are_called():
    """The probes run on one tier; another one whose name comes first must not blank them."""
    rows = synthetic_rows(
        datasets=DATASETS, backbones=("ViT-B-16", "DINO"), tiers=("dataset", "cupl"), text_free=("DINO",)
    )
    probed = [row for row in rows if row["method"] != "logistic_probe" or row["tier"] == "dataset"]
    alone = [row for row in probed if row["tier"] == "dataset"]
    assert Tables(probed)["text_free"].rows == Tables(alone)["text_free"].rows
    assert all(numbers(cell) for cell in Tables(probed)["text_free"].rows[-1][1:])


def test_ratio_tracking():
    loo, oracle = ratio("loo_blend", "dataset"), ratio("oracle_lambda", "dataset")
    cells = sorted(loo.keys() & oracle.keys())
    a, b = np.array([loo[c] for c in cells]), np.array([oracle[c] for c in cells])
    shown = row("ratio_tracking", "LOO blend")
    assert [float(x) for x in shown[1:4]] == pytest.approx([a.mean(), b.mean(), np.abs(a - b).mean()], abs=6e-4)
    assert numbers(shown[4])[0] == pytest.approx(stats.spearmanr(a, b).statistic, abs=6e-3)
    assert str(shown[6]) == str(len(cells))


def test_further_contrasts_are_paired_from_two_shots_on():
    wanted = {"tier": "dataset", "backbone": TEXT, "shots": {2, 4, 16}}
    shown = row("further_contrasts", "LP++ − LOO blend")
    values, datasets = difference(select(method="lpp", **wanted), select(method="loo_blend", **wanted))
    agrees(shown[1], values, datasets)
    assert str(shown[2]) == str(len(values))
    assert row("further_contrasts", "James–Stein blend − Zero-shot")


def test_backbones_are_ranked_by_share_and_by_room():
    assert "Rank correlation" not in TABLES["per_backbone"].caption
    rows = synthetic_rows(datasets=DATASETS, backbones=("a", "b", "c", "d"), tiers=("dataset",))
    level = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    deep = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}
    for one in rows:
        one["share"] = level[one["backbone"]]
        if one["method"] == "js_blend" and one["accuracy"] is not None:
            one["accuracy"] = 0.0
        elif one["accuracy"] is not None:
            one["accuracy"] = deep[one["backbone"]]
    caption = Tables(rows)["per_backbone"].caption
    expected_rho = stats.spearmanr(list(level.values()), list(deep.values())).statistic
    assert f"with the share {expected_rho:+.2f}".replace("-", "−") in caption
    assert "with zero-shot accuracy +1.00" in caption


def test_headroom_where_it_is_known():
    rng = np.random.default_rng(0)
    headroom = {(d, b): float(rng.uniform()) for d in DATASETS for b in sorted(TEXT)}
    found = Tables(context=Context(headroom=headroom))["strata"]
    surplus = [numbers(r[4])[0] for r in found.rows]
    predicted = [headroom[tuple(r[0].split(" · "))] for r in found.rows]
    rho, *ends = numbers(found.caption.split("Spearman")[1])[:3]
    assert rho == pytest.approx(stats.spearmanr(predicted, surplus).statistic, abs=0.05)
    # Encoders of one dataset are not independent: whole datasets are drawn.
    by_dataset = spearman(np.array(predicted), np.array(surplus), np.array([r[0].split(" · ")[0] for r in found.rows]))
    assert ends == pytest.approx([by_dataset.low, by_dataset.high], abs=0.05)


def test_datasets_and_gate():
    zero = select(method="zero_shot", tier="photo", backbone="ViT-B-16", dataset="alpha")
    shown = row("datasets", "alpha")
    assert float(shown[5]) == pytest.approx(np.mean(list(zero.values())), abs=0.051)
    assert shown[6:] == ("10–90", "pass")
    assert row("datasets", "beta")[6:] == ("90–95", "FAIL")
    assert row("datasets", "gamma")[6:] == ("–", "not judged")


def test_simultaneous_intervals_stand_beside_the_plain_ones():
    found = Tables(context=Context(corrected=True))["headline"]
    assert found.columns[-3:] == tuple(f"{name}, simultaneous" for name in ("all K", "K≥2", "K≥4"))
    for shown in found.rows:
        plain, wider = numbers(shown[1]), numbers(shown[5])
        assert plain[0] == wider[0]
        assert wider[1] < plain[1] < plain[2] < wider[2]


@pytest.mark.parametrize("key", sorted(EVERY))
def test_every_caption_says_hash_and_counts(key):
    caption = TABLES[key].caption
    if not TABLES[key].rows:
        # One line that gives the reason, and no number that would need a source.
        assert caption.endswith(".")
        assert "\n" not in caption
        assert not re.search(r"\d+ cells", caption)
        return
    assert "inputs " in caption
    if key != "sample_level":
        assert re.search(r"\d+ (cells|cells of \w+.*) of \d+ datasets|\d+ cells of tier .* \d+ datasets", caption)
