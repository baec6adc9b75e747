"""The wheel, installed into an empty environment outside the checkout, does the package's main jobs."""

import os
import re
import shlex
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

import kshot

pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 900


@dataclass(frozen=True)
class Elsewhere:
    """A folder with nothing in it, and an environment that knows kshot only from its wheel."""

    folder: Path
    environment: Path
    cache: Path

    def run(self, program: str, *arguments: str) -> str:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KSHOT_"))}
        done = subprocess.run(
            [self.environment / "bin" / program, *arguments],
            cwd=self.folder,
            env={**clean, "KSHOT_CACHE": str(self.cache), "COLUMNS": "140"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def run_here(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Elsewhere:
    """Only dependencies are lent: a .pth file names the folders where they are, and no .pth file in those is read."""
    place = tmp_path_factory.mktemp("elsewhere")
    run_here("build", "--no-isolation", "--wheel", "--outdir", place / "dist", ROOT)
    (wheel,) = (place / "dist").glob("*.whl")
    assert wheel.name.startswith(f"kshot-{kshot.__version__}-")
    environment = place / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    lent = [entry for entry in sys.path if Path(entry).name == "site-packages"]
    (packages / "lent.pth").write_text("\n".join(lent))
    python = environment / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", wheel)
    run_here("pip", "--disable-pip-version-check", "--python", python, *install)
    (place / "folder").mkdir()
    return Elsewhere(place / "folder", environment, place / "cache")


def test_kshot_comes_from_the_wheel(elsewhere):
    where = elsewhere.run("python", "-c", "import kshot; print(kshot.__file__)").strip()
    assert Path(where).is_relative_to(elsewhere.environment)
    assert elsewhere.run("kshot", "--version").split() == ["kshot", kshot.__version__]


def test_a_part_of_the_embedded_study_and_its_report(elsewhere):
    """The whole of it is what `make bench` computes."""
    assert "91 to compute in shard 0/25" in elsewhere.run("kshot", "run", "embedded", "--shard", "0/25")
    elsewhere.run("kshot", "report", "embedded")
    assert (elsewhere.folder / "records" / "reports" / "embedded" / "report.html").is_file()


def test_the_theory(elsewhere):
    assert "claims hold" in elsewhere.run("kshot", "paper", "verify", "--quick")


def test_the_fit_of_the_tutorial(elsewhere):
    """Its first two commands: the sample's drawings, and a head for them."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    for command in re.findall(r"^```sh\n(kshot .*)\n", page, re.MULTILINE)[:2]:
        elsewhere.run(*shlex.split(command))
    assert (elsewhere.folder / "head.safetensors").is_file()
