"""Code that nothing calls, found by vulture: `make unused`. What others call stands in ALLOWED with the reason.

Imports are left to ruff, which also reads annotations that are strings.
"""

import sys
from pathlib import Path

from vulture import Vulture

import kshot

ROOT = Path(__file__).resolve().parents[1]
PATHS = ("src", "tools", "benchmarks")
ALLOWED = {
    "__getattr__": "Python calls it where somebody imports from the package",
    "__dir__": "Python calls it for completion",
    "__annotations__": "dataclasses reads it",
    "_repr_html_": "notebooks call it",
    **dict.fromkeys(("to_polars", "to_arrow", "from_frame"), "the door: users call it"),
    "SeveralEncoders": "docs/recommendations.md names it",
    "decision_function": "scikit-learn calls it",
    **dict.fromkeys(("set_fit_request", "set_score_request"), "users of scikit-learn's metadata routing call it"),
    "check_name": "authors of methods hand it to pytest",
    "KnobSurvey": "named by a study",
    "Tuned": "users name it in a study",
    "agrees": "a word that users type",
    "not_computed": "a word that users type",
    "cannot_tell": "a word that users type",
    "not_comparable": "a word that users type",
    "n_correct": "a column of a record, written by its name",
    "writeable": "numpy reads it",
    "ir_version": "onnx reads it",
    "RELATIVE_ERROR": "the precision of kept answers, which tests hold",
    "argument": "sys.setprofile calls with it",
    "deep": "scikit-learn calls get_params(deep=…)",
    "Calibrated": "studies name it as kshot.methods.calibrated:Calibrated",
    "intermediate_result": "scipy finds the callback's argument by this name",
    "forward": "torch calls it",
    "setup": "Sphinx calls it",
    **dict.fromkeys(("doctor", "import_", "ls", "serve"), "kshot.cli.main imports commands by name"),
    **dict.fromkeys(("from_transformers", "from_open_clip", "text_of", "constants_of"), "the door: users call it"),
    "fit_transform": "scikit-learn calls it",
    "format_commands": "typer calls it for a help page",
    "ctx": "what typer hands to format_commands",
    "fit_one": "called by name in a process of its own",
    "report_memory": "called by name in a process of its own",
    "hold_rows": "called by name in a process of its own",
}


def unused(paths: list[Path], allowed: set[str]) -> list[str]:
    """One line for each thing that nothing uses, and for each allowed name that is used or gone."""
    found = Vulture(ignore_decorators=["@app.command"])
    found.scavenge([str(path) for path in paths])
    # Public names are imported at first use, by the stub.
    left = [item for item in found.get_unused_code() if item.typ != "import" and item.name not in kshot.__all__]
    lines = [
        f"{item.filename}:{item.first_lineno}: {item.typ} {item.name}" for item in left if item.name not in allowed
    ]
    stale = sorted(allowed - {item.name for item in left})
    return lines + [f"{name} is allowed to be unused but is used, or gone" for name in stale]


if __name__ == "__main__":
    told = unused([ROOT / path for path in PATHS], set(ALLOWED))
    print("\n".join(told) or "nothing is unused")
    sys.exit(bool(told))
