"""Run all benchmarks, or those named on the command line."""

import importlib
import pkgutil
import sys

import benchmarks


def run() -> int:
    wanted = sys.argv[1:]
    failed = 0
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith("_") or (wanted and module.name not in wanted):
            continue
        main = getattr(importlib.import_module(f"benchmarks.{module.name}"), "main", None)
        if main is not None:
            print(f"== {module.name}")
            failed += main()
    return failed


sys.exit(1 if run() else 0)
