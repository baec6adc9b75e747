"""`kshot paper verify` as a user meets it."""

import pytest
from typer.testing import CliRunner

from kshot.cli.main import app
from kshot.theory import decision
from kshot.theory.checks import CHECKS
from kshot.theory.checks.trial import Check, Verdict


@pytest.fixture
def few_checks(monkeypatch):
    for name in CHECKS.keys() - {"common_shift", "shot_correction"}:
        monkeypatch.delitem(CHECKS, name)


@pytest.mark.usefixtures("few_checks")
def test_a_table_of_claims_and_exit_code_zero():
    result = CliRunner().invoke(app, ["paper", "verify", "--quick"])
    assert result.exit_code == 0
    assert "2/2 K-correction" in result.stdout
    assert all(word in result.stdout for word in ("claim", "estimate", "tolerance", "verdict", "holds"))


@pytest.mark.usefixtures("few_checks")
def test_a_broken_formula_is_named_and_exits_with_one(monkeypatch):
    monkeypatch.setattr(decision, "expected_squared_overlap", lambda offset2, w2, d: offset2 * w2)
    result = CliRunner().invoke(app, ["paper", "verify", "--quick"])
    assert result.exit_code == 1
    failing = [line for line in result.stdout.splitlines() if "FAILS" in line]
    assert len(failing) == 1
    assert "mean squared overlap" in failing[0]
    assert "1 of" in result.stderr


@pytest.mark.usefixtures("few_checks")
def test_quick_and_full_are_different_efforts(monkeypatch):
    efforts = []

    def remember(rng, effort):
        efforts.append(effort.reduction)
        return [Verdict("claim", 0.0, 1.0)]

    for name in CHECKS:
        monkeypatch.setitem(CHECKS, name, Check(name, remember))
    for arguments in ([], ["--quick"]):
        assert CliRunner().invoke(app, ["paper", "verify", *arguments]).exit_code == 0
    assert efforts == [1, 1, 20, 20]
