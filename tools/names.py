"""One word, one meaning: no two public classes of kshot share a name: `make names`."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "kshot"


def repeats(source: Path) -> list[str]:
    """One line for each public class name that two modules define."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(source)))
    return [f"class {name}: {', '.join(places)}" for name, places in sorted(found.items()) if len(places) > 1]


if __name__ == "__main__":
    twice = repeats(SOURCE)
    print("\n".join([*twice, f"{len(twice)} class names stand for two things"]))
    sys.exit(bool(twice))
