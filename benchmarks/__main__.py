"""Run all benchmarks, or those named on the command line, each in a fresh process: none inherits another's memory."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if "def main(" in path.read_text("utf-8"))


def run(names: list[str], small: bool) -> int:
    """How many of them failed."""
    environment = os.environ | ({"KSHOT_SMALL": "1"} if small else {})
    failed = 0
    for name in names:
        print(f"== {name}", flush=True)
        code = f"from benchmarks.{name} import main; raise SystemExit(main())"
        failed += subprocess.run([sys.executable, "-c", code], env=environment).returncode != 0
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed against named baselines.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--small", action="store_true", help="do the work at a small size and print no ratio")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(NAMES)):
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(NAMES)}.")
    raise SystemExit(1 if run(given.names or NAMES, given.small) else 0)
