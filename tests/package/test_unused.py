"""The search for unused code finds it, and a list of exceptions that no longer fits."""

from tools.unused import unused


def test_unused_code_and_stale_exceptions_are_told(tmp_path):
    (tmp_path / "some.py").write_text(
        "import os\n\ndef left(): ...\n\ndef hook(): ...\n\ndef called(): ...\n\ncalled()\n"
    )
    told = unused([tmp_path], {"hook", "called"})
    assert told == [f"{tmp_path / 'some.py'}:3: function left", "called is allowed to be unused but is used, or gone"]
