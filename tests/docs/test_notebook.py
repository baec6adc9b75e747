"""The notebook of the docs from arrays to a leaderboard, in a kernel and as a script."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"


def arrays_cells():
    """The code cells before the study."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return code[: next(number for number, text in enumerate(code) if 'run("embedded")' in text)]


def test_it_takes_at_most_twelve_lines_and_two_workers():
    _, numpy_way, torch_way = arrays_cells()
    assert len([line for line in numpy_way.splitlines() if line]) <= 12
    assert "workers=2" in numpy_way
    assert "workers=2" in torch_way


@pytest.mark.slow
def test_it_runs_in_a_kernel(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("torch")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in arrays_cells()])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [[out["data"] for out in cell["outputs"] if "data" in out] for cell in notebook.cells]
    board = shown[1][-1]["text/html"]
    for title in ("Half and half", "Half and half (share=0.2)", "CLAP", "LP++"):
        assert f">{title}<" in board
    assert re.search(r"−\d+\.\d\d \[−\d+\.\d\d, [+−]\d+\.\d\d\]", board), "intervals"
    gap = r"\S+ \[\S+, \S+\], n = 15 cells, G = 1 dataset, interval over draws and pictures"
    assert re.fullmatch(gap, shown[2][-1]["text/plain"])
    assert not list(tmp_path.iterdir()), "nothing is stored"


def test_it_is_a_script_too(tmp_path):
    given, numpy_way, _ = arrays_cells()
    *lines, last = numpy_way.splitlines()
    program = "\n".join([given, *lines, f"print({last})"])
    (tmp_path / "script.py").write_text(program)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Half and half (share=0.2)" in done.stdout
