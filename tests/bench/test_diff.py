"""`kshot records diff`: paired where the draws are the same, by the noise of the draws where they are not."""

import numpy as np
import pytest

from kshot.bench.diff import compare
from kshot.results import Results
from kshot.stats.draw_noise import AGREES, CANNOT_TELL, DIFFERS
from synthetic_records import as_table, synthetic_rows

METHODS = ("zero_shot", "clap", "lpp", "logistic_probe")
SETS, ENCODERS, SHOTS = ("Pets", "Food101", "EuroSAT"), ("RN50", "ViT-B-16"), (1, 4)


def write(rows):
    return as_table(rows)


def made(seeds, seed=0):
    """Zero-shot does not vary over draws, as it should not."""
    rows = synthetic_rows(SETS, ENCODERS, ("dataset",), SHOTS, seeds, METHODS, seed=seed)
    fixed = {}
    for row in rows:
        if row["method"] == "zero_shot":
            row |= fixed.setdefault(
                (row["dataset"], row["backbone"]), {k: row[k] for k in ("accuracy", "n_correct", "hits")}
            )
    return rows


def moved(rows, by, **where):
    chosen = [all(row[axis] == value for axis, value in where.items()) for row in rows]
    return [
        row | ({"accuracy": row["accuracy"] + by / 100} if here else {}) for row, here in zip(rows, chosen, strict=True)
    ]


def verdicts(found):
    return {move.of: move.judged.verdict for move in (*found.moves, *found.strata)}


def test_the_same_draws_are_paired_and_a_small_shift_is_seen():
    first = write(made(range(5)))
    same = compare(first, first)
    assert same.same
    assert set(verdicts(same).values()) == {AGREES}
    found = compare(first, write(moved(made(range(5)), 0.3, method="clap")))
    assert found.paired
    assert not found.same
    assert verdicts(found)["clap"] == DIFFERS
    assert verdicts(found)["lpp"] == AGREES
    [clap] = [move for move in found.moves if move.of == "clap"]
    assert clap.mean_change == pytest.approx(0.3)
    assert clap.largest_change == pytest.approx(0.3)
    assert "not the same results" in found.summary


def test_other_draws_are_judged_by_their_noise():
    """The synthetic luck is that of 400 test pictures: 2.5 points a record, 0.5 points a mean of 60."""
    first, second = (write(made(range(5 * n, 5 * n + 5))) for n in range(2))
    found = compare(first, second)
    assert not found.paired
    assert (found.only_first, found.only_second) == (0, 0)
    assert found.moves[0].identical is None
    assert "the same results up to the luck of the draws" in found.summary
    [clap] = [move for move in found.moves if move.of == "clap"]
    by_hand = []
    for folder in range(2):
        rows = [row for row in made(range(5 * folder, 5 * folder + 5)) if row["method"] == "clap"]
        by_hand.append(100 * np.mean([row["accuracy"] for row in rows]))
    assert clap.mean_change == pytest.approx(by_hand[1] - by_hand[0])
    assert 0.2 < clap.judged.error < 1
    shifted = moved(made(range(5, 10)), -12, dataset="Pets", backbone="RN50")
    wrong = compare(first, write(shifted))
    assert verdicts(wrong)["Pets/RN50"] == DIFFERS
    assert verdicts(wrong)["Food101/ViT-B-16"] != DIFFERS


def test_one_draw_cannot_tell_unless_the_other_run_has_more():
    one, two, ten = (write(made(seeds)) for seeds in ([0], [1], range(2, 12)))
    assert {move.judged.verdict for move in compare(one, two).moves} == {CANNOT_TELL}
    lent, mirrored = compare(one, ten), compare(ten, one)
    [error] = {round(move.judged.error, 9) for found in (lent, mirrored) for move in found.moves if move.of == "clap"}
    [alone] = [move.judged.error for move in compare(ten, write(made(range(12, 22)))).moves if move.of == "clap"]
    # One draw has ten times the variance of ten: √11 beside √2.
    assert error == pytest.approx(alone * np.sqrt(11 / 2), rel=0.3)


@pytest.mark.parametrize(("off", "paired"), [(0.0, True), (0.3, False)])
def test_printed_accuracies_are_paired_where_they_agree_in_all_digits(off, paired):
    """They have one decimal; zero-shot does not vary over draws, but rounding explains its difference."""
    rows = made(range(5))
    ours = write(rows)
    for row in rows:
        row["accuracy"] += (off if row["seed"] % 2 else -off) / 100 * (row["method"] != "zero_shot")
    kept = ("dataset", "backbone", "tier", "shots", "seed", "method")
    theirs = [{n: row[n] for n in kept} | {"accuracy": round(100 * row["accuracy"], 1)} for row in rows]
    found = compare(ours, Results.from_frame(theirs, "theirs").records, (0.0, 0.1))
    assert found.paired == paired
    assert found.same == (off == 0)
    assert not found.differing
    assert all(abs(move.mean_change) <= 0.05 + off for move in found.moves)
    assert any(move.mean_change for move in found.moves)
