import subprocess
import sys

import pytest

KSHOT = [sys.executable, "-m", "kshot"]


@pytest.fixture
def kshot():
    def call(*arguments):
        return subprocess.run([*KSHOT, *map(str, arguments)], capture_output=True, text=True)

    return call
