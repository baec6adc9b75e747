"""Every command that a message, a docstring or a page names exists, and has the options that are named with it."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from kshot.cli.main import app

pytestmark = pytest.mark.ci

ROOT = Path(__file__).parents[2]
PLACES = {
    "src/kshot": ("py", "html", "js", "toml"),
    "docs": ("md", "ipynb"),
    "tools": ("py", "toml"),
    "benchmarks": ("py",),
    ".": ("md", "toml"),
}
# In backticks, or after "Type: ", which ends an error; on a page also a line of a block.
NAMED = re.compile(r"(?:`|Type: |^    )kshot ([a-z]+)(?: ([a-z]+)\b)?([^`\n]*)", re.MULTILINE)
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, set[str]]:
    """The options of each command by its name, a group's as "group command"."""
    root: Any = typer.main.get_command(app)
    found = {}
    for name in root.commands:
        command = root.get_command(None, name)
        inside = {f"{name} {sub}": each for sub, each in getattr(command, "commands", {}).items()}
        for path, one in {name: command, **inside}.items():
            found[path] = {option for parameter in one.params for option in parameter.opts} | {"--help"}
    return found


KNOWN = commands()


def mistakes(text: str) -> list[str]:
    found = []
    text = BLOCK.sub(lambda block: "    " + block[1].replace("\n", "\n    "), text)
    for first, second, rest in NAMED.findall(text):
        path = f"{first} {second}" if f"{first} {second}" in KNOWN else first
        is_group = any(name.startswith(f"{first} ") for name in KNOWN)
        if first not in KNOWN or (is_group and second and path == first):
            found.append(f"kshot {first} {second}")
        elif is_group and path == first:
            continue
        else:
            options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", re.split(r"\|| -- ", rest)[0]))
            found += [f"kshot {path} {option}" for option in options - KNOWN[path]]
    return found


@pytest.mark.parametrize("folder", PLACES)
def test_named_commands_exist(folder):
    pattern = "*" if folder == "." else "**/*"
    paths = [path for path in (ROOT / folder).glob(pattern) if path.suffix[1:] in PLACES[folder] and path.is_file()]
    assert paths
    wrong = {str(path.relative_to(ROOT)): bad for path in paths if (bad := mistakes(path.read_text(encoding="utf-8")))}
    assert not wrong


def test_a_command_that_is_no_more_is_found():
    assert mistakes("For blends see `kshot knob --help`.") == ["kshot knob "]
    assert mistakes("Type: kshot records join x") == ["kshot records join"]
    assert mistakes("`kshot run STUDY --resume`") == ["kshot run --resume"]
    assert not mistakes("`kshot records diff A B`, `kshot run STUDY --shard 0/2`")
