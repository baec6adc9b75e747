"""From the raw files of a cache to a leaderboard: the two commands of docs/add-a-dataset.md, word for word."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kshot.bench.study import find_study
from kshot.results import load_records

pytestmark = pytest.mark.ci

PAGE = Path(__file__).resolve().parents[3] / "docs" / "add-a-dataset.md"
(COMMANDS,) = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def typed(line: str, folder: Path) -> str:
    program, *words = shlex.split(line)
    assert program == "kshot"
    done = subprocess.run([sys.executable, "-m", "kshot", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_raw_files_to_a_leaderboard(real, tmp_path):
    (tmp_path / "caches").symlink_to(real / "tip-cache")
    importing, running = COMMANDS.strip().splitlines()
    said = typed(importing, tmp_path)
    assert "refused best_F_16shots.pt: it is 1600 × 1024, these features have 512 dimensions" in said
    # A file of the folder comes before the package's study of that name; two shot counts and one seed are enough here.
    study = find_study("embedded").read_text()
    study = re.sub(r"^shots = .*$", "shots = [2, 8]", study, flags=re.MULTILINE)
    study = re.sub(r"^seeds = .*$", "seeds = [0]", study, flags=re.MULTILINE)
    (tmp_path / "embedded").write_text(study)
    said = typed(running, tmp_path)
    board = said[said.index("Leaderboard") :]
    assert (
        board.index("LOO blend") < board.index("Zero-shot") < board.index("James–Stein blend") < board.index("Oracle")
    )
    assert "The ratio tuned on test labels" in board
    page = tmp_path / "records" / "reports" / "embedded" / "report.html"
    assert f"wrote {page.relative_to(tmp_path)}" in said
    assert page.is_file()
    found = load_records(tmp_path / "records")
    # The table of ../shared/real/README.md, three other draws: within a point.
    for shots, method, accuracy in (
        (2, "zero_shot", 94.2),
        (2, "loo_blend", 94.6),
        (2, "clap", 95.5),
        (8, "lpp", 96.0),
    ):
        cells = found.where(shots=shots).panel.column(method)
        assert abs(cells.mean() - accuracy) < 1
