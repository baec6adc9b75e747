"""Run all benchmarks, or those named on the command line, each in a fresh process: none inherits another's memory."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def run(wanted: list[str]) -> int:
    known = sorted(path.stem for path in FOLDER.glob("[a-z]*.py") if "def main(" in path.read_text("utf-8"))
    unknown = set(wanted) - set(known)
    if unknown:
        raise SystemExit(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(known)}.")
    failed = 0
    for name in wanted or known:
        print(f"== {name}", flush=True)
        code = f"from benchmarks.{name} import main; raise SystemExit(main())"
        failed += subprocess.run([sys.executable, "-c", code]).returncode != 0
    return failed


if __name__ == "__main__":
    raise SystemExit(1 if run(sys.argv[1:]) else 0)
