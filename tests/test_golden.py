"""Every table of the kept records equals the one that was stored before the house was rebuilt.

`python tests/test_golden.py` writes the stored tables again. Do that only in a commit that drops or adds a table or a
column, and look at the difference: no number may move.
"""

import json
from pathlib import Path

import pytest

from kshot.results import load_records

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
KEPT = {
    "open": "docs/open/records",
    "clip": "docs/clip/records",
    "gauss": "docs/gauss/records",
    "atlas": "docs/atlas/records",
    "beyond": "docs/beyond/beyond",
    "beyond-clip": "docs/beyond/beyond-clip",
}


def tables(folder: str) -> dict:
    """The values of every table, without captions: {table: {column: values}}."""
    return {table.key: table.values() for table in load_records(ROOT / folder).tables()}


def close(here, stored) -> bool:
    """Whether two values are alike; another processor may move the last digits of a number."""
    if isinstance(here, int | float) and isinstance(stored, int | float):
        return here == pytest.approx(stored, rel=1e-9, abs=1e-9, nan_ok=True)
    return here == stored


@pytest.mark.parametrize("name", KEPT)
def test_no_number_of_a_kept_table_moved(name):
    stored = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    here = tables(KEPT[name])
    assert list(here) == list(stored)
    for key, columns in stored.items():
        assert list(here[key]) == list(columns), key
        for column, values in columns.items():
            pairs = list(zip(here[key][column], values, strict=True))
            assert all(close(*pair) for pair in pairs), (key, column, [pair for pair in pairs if not close(*pair)])


if __name__ == "__main__":
    for name, folder in KEPT.items():
        text = json.dumps(tables(folder), indent=0, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
