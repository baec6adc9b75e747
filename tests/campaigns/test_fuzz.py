"""10,000 made-up inputs, the same each time: a sentence or an answer, never another exception."""

import io
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from kshot.bench.records import Records
from kshot.bench.study import load_study
from kshot.cli.main import main
from kshot.data.store import read_manifest
from kshot.encode.pictures import decode
from kshot.encode.sources.picture_files import csv_source
from kshot.errors import KshotError

EACH = 2000
many = settings(
    max_examples=EACH, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

COMMANDS = (
    "status",
    "report",
    "records compact",
    "records diff",
    "records import",
    "records check",
    "plan",
    "features check",
    "paper published",
    "slurm absent --shards 2",
    "ls",
    "predict",
)
OPTIONS = ("--records", "--features", "--method", "--shots", "--tier", "--format", "--shard", "--repair", "--output")
WORDS = (
    "absent",
    "no/where",
    "/dev/null",
    "/proc/self/mem",
    "①/3",
    "0/0",
    "-1",
    "",
    "x" * 300,
    "\x1b[31m",
    "~",
    "*",
    "..",
)
words = st.one_of(st.sampled_from(WORDS), st.sampled_from(OPTIONS), st.text(max_size=12))
plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["ncm", "clap", "a"])
)
nested = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
NAMES = ("name", "datasets", "backbones", "tiers", "shots", "seeds", "methods", "grid", "dtype", "views", "min_residue")


def allowed(call, *arguments):
    """Runs it; only kshot's own errors may come out."""
    with suppress(KshotError):
        call(*arguments)


@many
@given(st.sampled_from(COMMANDS), st.lists(words, max_size=4))
def test_command_lines(command, arguments):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["kshot", *command.split(), *(word.replace("\0", "") for word in arguments)])
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
        patch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "utf-8"))
        code = None
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        assert code in (0, 1, 2, None)
        left = [path for path in Path(folder).rglob("*") if path.name.startswith(".tmp-")]
        assert not left


@many
@given(st.dictionaries(st.sampled_from(NAMES), nested, max_size=9), st.binary(max_size=20), st.booleans())
def test_study_files(content, noise, damaged):
    lines = [f"{name} = {_toml(value)}" for name, value in content.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.toml")
        path.write_bytes("\n".join(lines).encode("utf-8", "replace") + (noise if damaged else b""))
        allowed(load_study, path)


def _toml(value) -> str:
    """Near enough: what is not TOML is input too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return "1979-05-27" if value is None else json.dumps(value)


@many
@given(
    st.lists(st.lists(st.text(max_size=8), min_size=0, max_size=4), max_size=5),
    st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-8-sig"]),
    st.binary(max_size=6),
)
def test_csv_files(rows, encoding, noise):
    text = "path,label\n" + "\n".join(",".join(row) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "list.csv")
        path.write_bytes(text.encode(encoding, "replace") + noise)
        allowed(csv_source, path)


@many
@given(
    st.dictionaries(
        st.sampled_from(
            ["hash", "study", "dropped", "features", "extends", "seal", "grids", "format", "versions", "classes"]
        ),
        nested,
    ),
    st.binary(max_size=4),
)
def test_json_files(content, noise):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.json")
        path.write_bytes(json.dumps(content).encode("utf-8", "replace") + noise)
        allowed(read_manifest, path)
        queries = Path(folder, "queries")
        queries.mkdir()
        path.rename(queries / f"s.{'0' * 32}.parquet")
        allowed(Records(folder).saved, "s")


def _pictures() -> list[bytes]:
    rng, found = np.random.default_rng(0), []
    for format in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"):
        out = io.BytesIO()
        Image.fromarray(rng.integers(0, 255, (12, 9, 3), np.uint8)).save(out, format)
        found.append(out.getvalue())
    return found


PICTURES = _pictures()


@many
@given(
    st.sampled_from(PICTURES),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6),
    st.integers(0, 10_000),
)
def test_pictures(content, changes, length):
    changed = bytearray(content)
    for place, value in changes:
        changed[place % len(changed)] = value
    allowed(lambda: decode(bytes(changed[: length % (2 * len(changed))]), "it", most_pixels=100_000, as_seen=True))
