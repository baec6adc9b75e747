"""One word, one meaning: no public class, function or module of kshot shares its name with another: `make names`.

Commands are left aside, except for their classes: a command bears the name of what it runs.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "kshot"
# Functions that every module of one folder has, because they are its contract.
CONTRACTS = {
    "theory/checks": "check",  # one Monte Carlo check per claim, found by its module
    "datasets/open": "listing",  # the pictures of one open set, found by its module
}


def named(source: Path) -> dict[tuple[str, str], list[str]]:
    """Where each (kind, name) is defined, as paths below the source."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        where, room = str(path.relative_to(source)), str(path.parent.relative_to(source))
        command = room == "cli"
        if path.stem != "__init__" and not command:
            found["module", path.stem].append(where)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found["class", node.name].append(where)
            elif isinstance(node, ast.FunctionDef) and not command and CONTRACTS.get(room) != node.name:
                found["function", node.name].append(where)
    return found


def repeats(source: Path) -> list[str]:
    """One line for each public name that stands for two things."""
    return [
        f"{kind} {name}: {', '.join(places)}"
        for (kind, name), places in sorted(named(source).items())
        if len(places) > 1 and not name.startswith("_")
    ]


if __name__ == "__main__":
    twice = repeats(SOURCE)
    print("\n".join([*twice, f"{len(twice)} names stand for two things"]))
    sys.exit(bool(twice))
