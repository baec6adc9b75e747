"""`python -m benchmarks [name …]`: run all benchmarks, or those named; exit 1 where one misses its mark."""

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    found = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    modules = [import_module(f"benchmarks.{name}") for name in sys.argv[1:] or found]
    missed = [module.__name__ for module in modules if hasattr(module, "main") and module.main()]
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
