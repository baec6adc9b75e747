"""The check for names with two meanings finds them, and leaves aside what is none."""

from tools.names import SOURCE, named, repeats

WORDS = {
    "bench/run.py": "class Shard: ...\ndef load(): ...\ndef _rows(): ...\n",
    "encode/base.py": "class Shard: ...\nclass Own:\n    def load(self): ...\ndef _rows(): ...\n",
    "stats/base.py": "def load(): ...\n",
    "cli/run.py": "class Own: ...\ndef load(): ...\n",
    "theory/checks/one.py": "def check(): ...\n",
    "theory/checks/two.py": "def check(): ...\n",
}


def test_two_meanings_are_found_and_contracts_commands_and_private_names_left_aside(tmp_path):
    for name, text in WORDS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert repeats(tmp_path) == [
        "class Own: cli/run.py, encode/base.py",
        "class Shard: bench/run.py, encode/base.py",
        "function load: bench/run.py, stats/base.py",
        "module base: encode/base.py, stats/base.py",
    ]


def test_the_package_is_looked_at():
    assert ("class", "Study") in named(SOURCE)
