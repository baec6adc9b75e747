"""The closed room for code that nobody has read: what it cannot see, write, reach or use up."""

import re

import pytest
from kshot.bench.isolation import Enclosure, can_isolate, run_isolated

from kshot.data.store import BUNDLED

pytestmark = pytest.mark.skipif(not can_isolate(), reason="bubblewrap cannot make namespaces here")
LIMITED = "from kshot.bench.isolation import limit_this_process as limit; limit(20, 2**31)\n"


@pytest.fixture
def room(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "secret").write_text("labels")
    return Enclosure(tmp_path / "code", seconds=60)


def test_it_sees_no_file_label_or_variable_and_writes_nothing(room, monkeypatch, tmp_path):
    monkeypatch.setenv("TOKEN", "secret")
    program = f"""
import os, socket
from pathlib import Path
print(Path({str(tmp_path / "secret")!r}).exists(), list(Path({str(BUNDLED)!r}).iterdir()), os.environ.get("TOKEN"))
for place in ("/", {str(room.code)!r}, "/usr", "/dev"):
    try:
        Path(place, "written").write_text("x")
        print("wrote", place)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", 22), 2)
    print("connected")
except OSError:
    pass
"""
    out, said = run_isolated(program, b"", (BUNDLED,), room)
    assert out == b"False [] None\n", said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code", "secret"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("bytearray(2**32)", "MemoryError"),
        ("import os\nwhile True: os.write(1, bytes(2**20))", "File too large"),
        ("file = open('/tmp/x', 'wb')\nwhile True: file.write(bytes(2**20))", "File too large|No space left"),
        ("limit(10**6, 2**40)", "(not allowed|exceeds|Operation not permitted)"),
    ],
)
def test_its_memory_and_files_are_limited(room, program, said):
    out, errors = run_isolated(LIMITED + program, b"", (), room)
    assert re.search(said, errors), errors
    assert len(out) <= 2**28


def test_its_time_is_limited(tmp_path):
    (tmp_path / "code").mkdir()
    assert run_isolated("while True: pass", b"", (), Enclosure(tmp_path / "code", 2)) == (
        b"",
        "it took longer than 2 s",
    )
