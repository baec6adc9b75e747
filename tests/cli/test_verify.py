"""`kshot paper verify` as a user meets it."""

import pytest
from typer.testing import CliRunner

from kshot.cli.main import app
from kshot.paper import checks
from kshot.paper.checks.trial import Verdict
from kshot.theory import shift


@pytest.fixture
def few_checks(monkeypatch):
    monkeypatch.setattr(checks, "NAMES", ("common_shift", "shot_correction"))


@pytest.mark.usefixtures("few_checks")
def test_a_table_of_claims_and_exit_code_zero():
    result = CliRunner().invoke(app, ["paper", "verify", "--quick"])
    assert result.exit_code == 0
    assert "2/2 K-correction" in result.stdout
    assert all(word in result.stdout for word in ("claim", "estimate", "tolerance", "verdict", "holds"))


@pytest.mark.usefixtures("few_checks")
def test_a_broken_formula_is_named_and_exits_with_one(monkeypatch):
    monkeypatch.setattr(shift, "expected_squared_overlap", lambda offset2, w2, d: offset2 * w2)
    result = CliRunner().invoke(app, ["paper", "verify", "--quick"])
    assert result.exit_code == 1
    failing = [line for line in result.stdout.splitlines() if "FAILS" in line]
    assert len(failing) == 1
    assert "mean squared overlap" in failing[0]
    assert "1 of" in result.stderr


def test_quick_and_full_are_different_efforts(monkeypatch):
    efforts = []

    def remember(effort, progress):
        efforts.append(effort.reduction)
        return [Verdict("claim", 0.0, 1.0)]

    monkeypatch.setattr(checks, "verify", remember)
    for arguments in ([], ["--quick"]):
        assert CliRunner().invoke(app, ["paper", "verify", *arguments]).exit_code == 0
    assert efforts == [1, 20]
