"""A changed, cut or lengthened file of records counts as missing: no other number is ever read."""

import os
import random
import shutil
import tomllib

import pytest

from folders import comparable, fill, missing
from kshot.bench.records import Records
from kshot.bench.study import parse_study

pytestmark = pytest.mark.slow

CHANGES = int(os.environ.get("KSHOT_CORRUPTIONS", "1700"))
STUDY = """
name = "small"
datasets = ["sim-satellite"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 2]
seeds = [0]
methods = ["zero_shot", "ncm"]
"""


def test_no_corruption_is_accepted_and_nothing_else_is_lost(tmp_path):
    study, whole = parse_study(tomllib.loads(STUDY), "s"), Records(tmp_path / "whole")
    fill(study, tmp_path / "features", whole)
    rows = whole.table(whole.keys(), _columns())
    parts = Records(tmp_path / "parts")
    for number in range(len(rows)):
        parts.add(rows.slice(number, 1))
    shutil.copytree(whole.folder / "queries", parts.folder / "queries")
    before, rng = comparable(whole.folder), random.Random(0)
    assert comparable(parts.folder).equals(before)
    for _ in range(CHANGES):
        path = rng.choice(sorted(parts.folder.glob("*.parquet")))
        content = path.read_bytes()
        changed = bytearray(content)
        match rng.choice(("flip", "cut", "more", "zeros")):
            case "flip":
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            case "cut":
                del changed[rng.randrange(len(changed)) :]
            case "more":
                changed += rng.randbytes(rng.randint(1, 9))
            case _:
                place = rng.randrange(len(changed))
                changed[place : place + 64] = bytes(min(64, len(changed) - place))
        path.write_bytes(changed)
        if bytes(changed) != content:
            assert missing(parts.folder) == 1
            assert set(comparable(parts.folder).to_pylist()[0]) == set(before.column_names)
            assert all(row in before.to_pylist() for row in comparable(parts.folder).to_pylist())
        path.write_bytes(content)
    assert comparable(parts.folder).equals(before)


def _columns():
    from kshot.bench.record import schema

    return schema().names
