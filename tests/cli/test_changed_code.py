"""A method of one's own that is edited between two runs of the same command."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from folders import edit
from kshot.bench.records import Records, load_table
from kshot.bench.status import run_status
from kshot.runs import verify_methods

pytestmark = pytest.mark.ci

# The factor lives in a module of its own, which the method's module imports.
METHOD = """
from kshot.methods.ncm import NCM
from weights import FACTOR

class Half(NCM):
    def _fit(self, task):
        super()._fit(task)
        self.coef_ = self.coef_ * FACTOR
"""
RUN = ("run", "tiny.toml", "--method", "my_method:Half", "--records", "own")


@pytest.fixture
def own(kshot):
    Path("my_method.py").write_text(METHOD)
    Path("weights.py").write_text("FACTOR = 1.0\n")
    return kshot


def accuracies(folder):
    rows = load_table(folder).to_pylist()
    return {(row["shots"], row["method"]): row["accuracy"] for row in rows}


@pytest.mark.parametrize("compacted", [False, True])
def test_changed_code_is_computed_again_and_the_old_records_are_kept(own, compacted):
    assert own(*RUN).returncode == 0
    before, present = accuracies("own"), Records("own")
    assert before[2, "my_method:Half"] == before[2, "ncm"] > 0.2
    if compacted:
        own("records", "compact", "own")
    assert "2 done, 0 to compute" in own(*RUN).stdout
    Path("weights.py").write_text("FACTOR = 0.0  # weights times zero\n")
    assert run_status(present.folder).missing == 2
    done = own(*RUN, "--verify")
    assert done.returncode == 0, done.stderr
    assert "my_method:Half was changed since 2 of its cells were computed" in done.stderr
    assert "the same predictions" in done.stdout
    after = accuracies("own")
    # All scores are zero, so that every picture is given to the first of the ten classes.
    assert after[2, "my_method:Half"] == pytest.approx(0.1)
    assert {key: value for key, value in after.items() if key[1] != "my_method:Half"} == {
        key: value for key, value in before.items() if key[1] != "my_method:Half"
    }
    (kept,) = Path("own/superseded").glob("*.parquet")
    rows = pq.ParquetFile(kept).read().to_pylist()
    assert {(r["shots"], r["method"]): r["accuracy"] for r in rows} == {
        key: value for key, value in before.items() if key[1] == "my_method:Half"
    }
    again = own(*RUN)
    assert "2 done, 0 to compute" in again.stdout
    assert "changed" not in again.stderr
    assert own("records", "check", "own").returncode == 0


def test_judge_sees_the_changed_code(own):
    judge = ("judge", "my_method:Half", "tiny.toml", "--workers", "1")
    folder = "records/tiny-judge-my_method-Half"
    assert own(*judge).returncode == 0
    assert accuracies(folder)[2, "my_method:Half"] > 0.2
    edit("weights.py", "1.0", "0.00")
    done = own(*judge)
    assert "was changed" in done.stderr
    assert accuracies(folder)[2, "my_method:Half"] == pytest.approx(0.1)
    assert "did not declare" not in done.stdout


def test_changed_code_is_not_accused(own):
    assert own(*RUN).returncode == 0
    edit("weights.py", "1.0", "0.00")
    (found,) = verify_methods("own")
    assert found.changed
    assert not found.differences
    assert "was changed since its records were computed" in str(found)
