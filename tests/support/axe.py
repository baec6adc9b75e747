"""axe-core's audit of an open page; `make browser` installs it, and CI requires it."""

import os
from pathlib import Path

import pytest

AXE = Path(__file__).resolve().parents[2] / "build/node_modules/axe-core/axe.min.js"
GRAVE = ("serious", "critical")


def grave_findings(page) -> list[str]:
    """Each serious or critical finding as "rule: element (what is wrong)". The page keeps its security policy and
    sends nothing: the script goes through the browser's debugger, not through an element of the page."""
    if not AXE.is_file():
        reason = "axe-core is not here; `make browser` installs it"
        if os.environ.get("KSHOT_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = page.evaluate("async () => (await axe.run(document, {preload: false})).violations")
    return [
        f"{found['id']}: {node['html'][:200]} ({node['failureSummary']})"
        for found in violations
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]
