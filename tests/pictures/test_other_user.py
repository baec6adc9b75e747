"""Another user of the machine, a real one: no look at a head, no answer from its server."""

import os
import tempfile
from pathlib import Path

import pytest

from colours import new_picture
from other_user import needs_root, tried
from serving import ask, killable

TOKEN = "a-token-that-is-long-enough"
pytestmark = [needs_root, pytest.mark.ci]


@pytest.fixture
def head(shades, fit):
    """Where everybody may look, and made twice under a strict umask."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        before = os.umask(0o077)
        try:
            for _ in range(2):
                fit(shades).head.save(Path(folder, "head"))
        finally:
            os.umask(before)
        yield Path(folder, "head")


def test_another_user_reads_no_head_and_gets_no_answer_from_its_server(head):
    (head.parent / "open").write_text("for all")
    process, port = killable(head, TOKEN)
    url = f"http://127.0.0.1:{port}"
    try:
        # A new shot, so that the server too has written the file.
        sent = {"body": new_picture("green", 7), "Authorization": f"Bearer {TOKEN}"}
        added = ask(port, "POST", "/api/shots?label=green", **sent)
        assert added[0] == 200
        opened, of_head, *of_process, nothing, wrong, right = tried(
            ("read", str(head.parent / "open")),
            ("read", str(head)),
            ("read", f"/proc/{process.pid}/environ"),
            ("read", f"/proc/{process.pid}/mem"),
            ("ask", f"{url}/api/head"),
            ("ask", f"{url}/api/head", "another-token-of-that-length"),
            ("ask", f"{url}/api/head", TOKEN),
        )
        assert TOKEN.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    finally:
        process.kill()
        process.communicate()
    assert (opened, right) == (7, 200), "what is allowed must work, or the rest fails for another reason"
    assert {of_head, *of_process} == {"PermissionError"}
    assert {nothing, wrong} == {401}
