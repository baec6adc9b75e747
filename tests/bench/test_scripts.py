"""`kshot.run` from files, sessions and standard input, each in a fresh interpreter, with one worker and with two."""

import subprocess
import sys
from pathlib import Path

import pytest

from folders import comparable

pytestmark = pytest.mark.ci

SCRIPT = """
import kshot
print(len(kshot.run("small.toml", records="{records}", workers={workers}).records), "records")
"""
OWN = """
import kshot
from kshot.methods.ncm import NCM

class Half(NCM):
    pass

kshot.run("small.toml", heads=["__main__:Half"], workers={workers})
"""


def start(way, text):
    Path("script.py").write_text(text)
    arguments = {
        "file": ["script.py"],
        "module": ["-m", "script"],
        "-c": ["-c", text],
        "stdin": ["-"],
        "session": ["-i"],
    }
    given = text if way in ("stdin", "session") else None
    return subprocess.run([sys.executable, *arguments[way]], input=given, capture_output=True, text=True)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", ["file", "module", "-c", "stdin", "session"])
def test_a_script_needs_no_guard(folder, records, way, workers):
    done = start(way, SCRIPT.format(records="own", workers=workers))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["36", "records"], "the script ran once, and not again in every worker"
    assert "Traceback" not in done.stderr
    assert comparable("own").equals(comparable(records.folder))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_method_of_the_script_itself_is_refused_and_binds_nothing(folder, records, workers):
    done = start("file", OWN.format(workers=workers))
    assert done.returncode == 1
    assert "'__main__:Half' lives in the script" in done.stderr.splitlines()[-1]
    assert not Path("records/queries/half").exists()
    again = start("file", 'import kshot; kshot.run("small.toml", workers=1)')
    assert again.returncode == 0, again.stderr
