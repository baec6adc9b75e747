"""The registry and its rules: data that is whole, and derived numbers that the paper's own tables give back."""

import numpy as np
import pytest

from kshot.errors import StudyError
from kshot.paper.claims import paper_claims, paper_rules, parse_conditions, read_claims
from kshot.paper.evaluate import Evaluator
from kshot.paper.formulas import FORMULAS, OF_CELLS, OF_FIGURES, OF_PAIRS, Figure
from kshot.paper.judge import gap
from kshot.stats.bootstrap import critical_value

CLAIMS = {claim.id: claim for claim in paper_claims()}
# Made of other printed numbers, whose rounding they inherit.
ROUNDED = {"sampling.closure.k16", "precision.hoso.band"}


def test_the_registry_is_whole():
    assert len(CLAIMS) == 917
    assert all(np.isfinite(claim.value) for claim in CLAIMS.values())
    assert sum(claim.low is not None for claim in CLAIMS.values()) == 109


def test_it_is_the_registry_that_was_extracted_from_the_paper(published):
    assert [c.id for c in read_claims(published / "claims.csv")] == list(CLAIMS)
    assert read_claims(published / "claims.csv") == paper_claims()


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("headline.clap.allk", 0.005), ("share.all", 0.05), ("sampling.sd.k2", 0.0005), ("count.cells.total", 0.5)],
)
def test_rounding_is_half_of_the_last_printed_place(name, tolerance):
    assert CLAIMS[name].tolerance == pytest.approx(tolerance)


def test_conditions_are_read_from_words():
    found = parse_conditions("tier=dataset; K>=4; K in {2,4}; method in {clap,lpp}; relation=<=; float64 minus float32")
    assert found["tier"].admits("dataset")
    assert not found["tier"].admits("photo")
    assert found["K"].admits(2)
    assert not found["K"].admits(8)
    assert found["method"].values == ("clap", "lpp")
    assert found["relation"].values == ("<=",)
    assert "float64 minus float32" in found
    assert [k for k in (1, 2, 4, 8) if parse_conditions("K>=4")["K"].admits(k)] == [4, 8]


def test_every_rule_is_used_and_names_what_exists():
    rules = paper_rules()
    used = [rules.rule(claim) for claim in CLAIMS.values()]
    for rule in rules.rules:
        assert rule in used, rule
        assert rule.figure in OF_CELLS
        assert not rule.reduce or rule.reduce in (OF_PAIRS if rule.paired_with else OF_FIGURES)
        assert not rule.formula or rule.formula in FORMULAS
    for pattern in rules.contradictions:
        assert any(rules.contradiction(claim) == rules.contradictions[pattern] for claim in CLAIMS.values())
    assert {claim.arm for claim in CLAIMS.values()} <= rules.commands.keys()


def admits(claim, ours):
    """Whether ours is the printed number to its rounding, or meets the stated relation."""
    strict = claim.relation in ("<", ">", "abs<")
    return not abs(gap(claim, ours)) if strict else bool(abs(gap(claim, ours)) <= claim.tolerance * (1 + 1e-9))


class PaperItself(Evaluator):
    """Every number that is measured on cells is the printed one; only what is made of numbers is computed."""

    def _measure(self, claim, rule):
        error = None if claim.low is None else (claim.high - claim.low) / 2 / critical_value(9, 0.95)
        return Figure(claim.value, 0, 10, error)


def test_the_papers_tables_give_its_derived_numbers_back():
    rules = paper_rules()
    paper = PaperItself(paper_claims(), rules, {})
    derived = [c for c in CLAIMS.values() if rules.rule(c).over or rules.rule(c).formula]
    assert len(derived) == 42
    wrong = {claim.id for claim in derived if not admits(claim, paper.answer(claim).value)}
    contradicted = {claim.id for claim in derived if rules.contradiction(claim)}
    assert wrong <= contradicted | ROUNDED
    assert "strata.exceptions.bound" in wrong
    assert paper.answer(CLAIMS["strata.exceptions.bound"]).value == pytest.approx(2.35)


@pytest.mark.parametrize(
    ("name", "ours", "expected"),
    [
        ("headline.clap.allk", 1.924, True),
        ("headline.clap.allk", 1.93, False),
        ("headline.hoso.allk", 0.8, True),
        ("headline.hoso.allk", 0.9, False),
        ("leaderboard.k2.clap", 71.54, True),
        ("leaderboard.k2.clap", 71.56, False),
        ("loo.within.abstract_bound", -0.89, True),
        ("loo.within.abstract_bound", -1.0, False),
        ("sampling.gap_over_sd.max", 700.0, True),
        ("sampling.gap_over_sd.max", 680.0, False),
        ("loo.vs_zero_shot.eurosat_k2", 0.0, True),
        ("loo.per_class.vs_global", -0.1, True),
        ("loo.per_class.vs_global", 0.1, False),
    ],
)
def test_what_no_draw_changes_agrees_to_its_rounding_or_by_its_relation(name, ours, expected):
    assert admits(CLAIMS[name], ours) is expected


def test_a_registry_that_is_none_is_refused(tmp_path):
    with pytest.raises(StudyError, match="--against"):
        read_claims(tmp_path / "absent.csv")
    broken = tmp_path / "broken.csv"
    broken.write_text("id,place,arm,quantity,unit,value,low,high,n,restrict,kind\na,b,main,c,none,many,,,,,\n")
    with pytest.raises(StudyError, match="line 2"):
        read_claims(broken)


def test_of_no_gap_there_is_no_part():
    """Where validation changes nothing, what leave-one-out recovers is not known."""
    for tuned, part in ((64.0, 0.25), (60.0, np.nan)):
        of = {"gda_alpha1": 60.0, "gda_alpha_loo": 61.0, "gda_alpha_val": tuned}
        figures = {("2", method): Figure(value) for method, value in of.items()}
        np.testing.assert_equal(OF_FIGURES["part of the gap closed"](figures).value, part)
