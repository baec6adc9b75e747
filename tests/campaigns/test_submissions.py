"""More than two hundred damaged and malicious submissions: none is accepted, nothing of them is run or written."""

import io
import json
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from board_yard import FEATURES, edit_answers, edit_records, honest_yard, raise_results, swap_wheel
from kshot.bench.record import CELL, read_header, write_header
from kshot.bench.records import cell_place, load_table
from kshot.bench.study import Cell
from kshot.cli.main import app
from kshot.files import _digest, replace_table

pytestmark = pytest.mark.ci

Attack = Callable[[Path], object]
CANARY = "canary"
ATTACKS: dict[str, Attack] = {}


def attack(name: str, *arguments):
    """Registers a function once, or once for each argument."""

    def register(function):
        for number, argument in enumerate(arguments or (None,)):
            # Workers of pytest must agree on the names, so no name holds a function's address.
            text = re.sub(" at 0x[0-9a-f]+", f" {number}", str(argument))
            label = name if argument is None else f"{name} {text[:60]!a}"
            ATTACKS[label] = function if argument is None else lambda folder, given=argument: function(folder, given)
        return function

    return register


def damaged_files(folder: Path) -> list[Path]:
    names = ("records/compact", "records/answers", "records/study.json")
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in found if path.suffix == ".whl" or path.relative_to(folder).as_posix().startswith(names)]


@attack("a byte is turned over", *range(60))
def turn_byte(folder, number):
    rng = np.random.default_rng(number)
    path = rng.choice(damaged_files(folder))
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 0xFF
    path.write_bytes(content)


@attack("a file is cut", *range(20))
def cut(folder, number):
    rng = np.random.default_rng(number)
    path = rng.choice(damaged_files(folder))
    path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])


@attack("a file is lost", "about.toml", "entry.json", "records/study.json", "records/compact", "records/answers")
def lose(folder, name):
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@attack(
    "about.toml",
    'name = "\\u202Erevo"',
    'name = "a\\u0000b"',
    'name = "line\\nline"',
    'name = "СLAP"',
    'name = "Verified best"',
    'name = ""',
    "name = 3",
    f'name = "{"x" * 301}"',
    "authors = []",
    'authors = "one"',
    'authors = [["nested"]]',
    f"authors = {['a'] * 51}",
    'link = "javascript:alert(1)"',
    'link = "data:text/html,<script>alert(1)</script>"',
    'link = "https://x/\'onclick=alert(1)"',
    'link = "file:///etc/passwd"',
    'licence = "<script>"',
    'licence = ""',
    'date = "yesterday"',
    'date = "2026-13-45"',
    'hyperparameters = "test"',
    'hyperparameters = "secret"',
    'extra_data = "some"',
    'hardware = "\\u001b[31mred"',
    "unknown = 1",
    "[name]\nx = 1",
    f"deep = {'[' * 5000}",
    "= broken",
)
def change_about(folder, line):
    key = line.split()[0].strip("[]")
    kept = [text for text in (folder / "about.toml").read_text().splitlines() if not text.startswith(key)]
    (folder / "about.toml").write_text("\n".join([*kept, line]))


@attack("about.toml is no text", b"\xff\xfe\x00", b"\x00" * 100, b"#" * 70_000)
def binary_about(folder, content):
    (folder / "about.toml").write_bytes(content)


@attack(
    "entry.json",
    {"method": "os:system"},
    {"method": "__import__('os').system('touch canary')"},
    {"method": "yard_heads:FrameReader;x"},
    {"method": "../yard_heads:Pair"},
    {"study": "../../etc/passwd"},
    {"study": "embedded"},
    {"board": "0" * 16},
    {"wheel": "../outside.whl"},
    {"wheel": "/etc/passwd"},
    {"wheel_sha256": "0" * 64},
    {"environment": {}},
    {"environment": {"x": "\x1b[31m"}},
    {"environment": [1]},
    {"method": 3},
    {"extra": "key"},
)
def change_entry(folder, changes):
    content = json.loads((folder / "entry.json").read_text()) | changes
    if "study" in changes:
        content["board"] = "f" * 16
    (folder / "entry.json").write_text(json.dumps(content))


@attack("entry.json is strange", "[]", "", "null", "[" * 100_000, '{"a":' * 9000)
def strange_entry(folder, text):
    (folder / "entry.json").write_text(text[:65000])


@attack(
    "a file that does not belong",
    "verdict.json",
    "setup.py",
    ".hidden",
    "records/study-copy.json",
    "records/cells/x.parquet",
    "records/answers/x.pth",
    "<script>alert(1)</script>.toml",
    "a\nb.toml",
    "run.sh",
    "second-1-py3-none-any.whl",
    "records/compact/joined.0123456789abcdef.parquet",
    "a/b/c/d/e/f/g/h.txt",
    "\x1b[2J.json",
)
def add_file(folder, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("import os")


@attack("a link", "about.toml", "entry.json", "records/study.json", "secret.toml")
def link(folder, name):
    target = folder.parent.parent / "elsewhere"
    if (folder / name).exists():
        target.write_bytes((folder / name).read_bytes())
        (folder / name).unlink()
    (folder / name).symlink_to(target)


@attack("a folder is a link", "records", "records/answers")
def link_folder(folder, name):
    moved = shutil.move(folder / name, folder.parent.parent / f"moved-{name.replace('/', '-')}")
    (folder / name).symlink_to(moved)


@attack("an empty folder", ".git", "<b>", "records/answers/a/b/c/d")
def add_folder(folder, name):
    (folder / name).mkdir(parents=True)


@attack("the folder's name is no text")
def no_text(folder):
    return folder.rename(os.fsdecode(os.fsencode(folder.parent) + b"/\xff\x1b[2J"))


@attack("a pipe that never ends")
def pipe(folder):
    (folder / "about.toml").unlink()
    os.mkfifo(folder / "about.toml")


@attack("a sparse giant", "about.toml", "records/compact/joined.0123456789abcdef.parquet", "x-1-py3-none-any.whl")
def giant(folder, name):
    with (folder / name).open("wb") as file:
        file.truncate(2**34)


def wheel_with(folder: Path, entries: dict[str, bytes], keep: bool = True, mode: int = 0o644) -> None:
    """The wheel and further entries."""
    (wheel,) = folder.glob("*.whl")
    out = io.BytesIO()
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist() if keep else ():
            new.writestr(entry, old.read(entry))
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            new.writestr(info, content, zipfile.ZIP_DEFLATED)
    swap_wheel(folder, out.getvalue())


WRITES = f"open({CANARY!r}, 'w')\nimport os; os.system('touch {CANARY}')\n".encode()


@attack(
    "the wheel holds",
    "../climbs.py",
    "../../climbs.py",
    "/absolute.py",
    "..\\climbs.py",
    "C:/x.py",
    "a/../../b.py",
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "evil.pth",
    "a/evil.pth",
    "x-0.data/scripts/run",
    "numpy/__init__.py",
    "kshot/__init__.py",
    "os.py",
    "sitecustomize.py",
    "yard_heads/__init__.py",
    "YARD_HEADS.py",
    "a\x1b[31m.py",
)
def put_into_wheel(folder, name):
    wheel_with(folder, {name: WRITES})


@attack(
    "the content of the wheel",
    {f"zeros{number}.bin": bytes(2**26) for number in range(4)},
    {f"m/f{number}.py": b"" for number in range(2500)},
)
def strange_content(folder, entries):
    wheel_with(folder, entries)


@attack("the whole content of the wheel", {}, {"yard_heads.py": WRITES, "yard_heads-0.dist-info/WHEEL": b""})
def other_content(folder, entries):
    wheel_with(folder, entries, keep=False)


@attack("the wheel holds a link")
def wheel_link(folder):
    wheel_with(folder, {"link.py": b"/etc/passwd"}, mode=stat.S_IFLNK | 0o777)


@attack("the wheel lies about a size")
def lying_size(folder):
    (wheel,) = folder.glob("*.whl")
    content = wheel.read_bytes()
    place = content.index(b"PK\x01\x02") + 24
    swap_wheel(folder, content[:place] + (10).to_bytes(4, "little") + content[place + 4 :])


@attack("the wheel is no zip", b"", b"PK\x03\x04", b"\x1f\x8b" + bytes(50), bytes(2**20))
def no_zip(folder, content):
    swap_wheel(folder, content)


SOME_RECORDS = {
    "accuracy": [1.0],
    "n_correct": [400],
    "hits": [b"\xff" * 60, b""],
    "n_test": [100_000],
    "status": ["failed", "great", None],
    "method": ["clap"],
    "study_hash": ["0" * 16],
    "d2": [0.5],
    "lambda_js": [None],
    "v": [float("nan")],
    "share": [2.0],
    "n_classes": [5],
    "protocol": ["mine"],
    "dtype": ["float64"],
    "version": ["9.9"],
    "study": ["other"],
    "views": [None],
    "reason": ["x" * 70_000],
    "code": ["0" * 16],
    "simulated": [True],
    "feature_hashes": ["{}", "["],
    "sees": [["support", "test", "text"], [], ["support", "everything"]],
    "selected": ["[" * 3000, "[]", None],
    "fit_seconds": [-1.0],
    "score_seconds": [float("nan")],
    "title": ["<script>alert(1)</script>"],
    "seed": [7],
    "shots": [3],
    "dataset": ["../../etc", None],
    "profile": ["missing"],
}


@attack("a column of some records", *((name, value) for name, values in SOME_RECORDS.items() for value in values))
def change_column(folder, change):
    column, value = change
    edit_records(folder, lambda rows: [row | {column: value} if n % 3 == 0 else row for n, row in enumerate(rows)])


@attack(
    "a column of all records",
    {"version": "imported", "accuracy": 1.0},
    {"version": "<script>"},
    {"version": "9" * 100},
    {"accuracy": float("nan")},
    {"title": None},
    {"sees": ["test", "support", "text"]},
    {"selected": "NaN"},
    {"selected": json.dumps({"lambda": True}), "selected_from": "[]"},
    {"status": "undefined"},
    {"selected": json.dumps({"x": 10**400})},
    {"selected_from": json.dumps({"ratio": "test"})},
    {"selected_from": json.dumps({"ratio": ["support"]})},
    {"status": "undefined", "accuracy": None, "n_correct": None, "hits": b""},
)
def change_all(folder, values):
    edit_records(folder, lambda rows: [row | values for row in rows])


@attack("hits beyond the last picture")
def padded_hits(folder):
    def pad(rows):
        for row in rows:
            hits = np.unpackbits(np.frombuffer(row["hits"], np.uint8))
            hits[row["n_test"] :] = 1
            row |= {"hits": np.packbits(hits).tobytes(), "n_correct": int(hits.sum())}
            row["accuracy"] = row["n_correct"] / row["n_test"]
        return rows

    edit_records(folder, pad)


@attack("cells with a poor result are called undefined")
def undefined_cells(folder):
    def choose(row):
        if row["seed"]:
            return row
        place = cell_place(Cell(*(row[name] for name in CELL)), "answers")
        for path in (folder / "records").glob(f"{place}.*.parquet"):
            path.unlink()
        return row | {"status": "undefined", "accuracy": None, "n_correct": None, "hits": b""}

    edit_records(folder, lambda rows: [choose(row) for row in rows])


def swapped_facts(rows):
    """Shots of other seeds."""
    facts = [{name: row[name] for name in ("lambda_js", "d2", "v", "share")} for row in rows]
    return [row | fact for row, fact in zip(rows, facts[::-1], strict=True)]


@attack(
    "records",
    lambda rows: rows[1:],
    lambda rows: [*rows[1:], rows[1]],
    swapped_facts,
    lambda rows: [row | {"selected": "x" * 2**24} for row in rows],
)
def change_rows(folder, change):
    edit_records(folder, change)


@attack("results are raised, the answers are not")
def raised(folder):
    raise_results(folder, with_answers=False)


def put_table(folder: Path, table: pa.Table) -> None:
    shutil.rmtree(folder / "records" / "compact")
    replace_table(table, folder / "records", "compact/joined")


@attack("a parquet file of very many rows")
def huge(folder):
    (path,) = (folder / "records" / "compact").iterdir()
    row = pq.read_table(path).slice(0, 1)
    put_table(folder, row.take(np.zeros(2_000_000, np.int64)))


@attack("a parquet file whose rows share one giant text")
def shared_giant(folder):
    table = load_table(folder / "records")
    giant = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), pa.array(["x" * 10**8]))
    where = table.column_names.index("selected")
    kinds = [pa.field(one.name, giant.type) if one.name == "selected" else one for one in table.schema]
    sink = pa.BufferOutputStream()
    shared = table.set_column(where, "selected", giant).cast(pa.schema(kinds))
    pq.write_table(shared, sink, compression="zstd", store_schema=False)
    put_content(folder, sink.getvalue().to_pybytes())


@attack("a parquet file of other columns")
def other_columns(folder):
    put_table(folder, pa.table({"method": ["x"] * 8}))


@attack("what is called parquet", b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"\x80\x04cos\nsystem\n")
def not_parquet(folder, content):
    put_content(folder, content)


def put_content(folder: Path, content: bytes) -> None:
    (path,) = (folder / "records" / "compact").iterdir()
    path.unlink()
    name = f"joined.{_digest('compact/joined', content)}.parquet"
    (folder / "records" / "compact" / name).write_bytes(content)


@attack(
    "answers",
    ("truth", lambda n: np.zeros(n, int)),
    ("predicted", lambda n: np.zeros(n, int)),
    ("predicted", lambda n: np.full(n, 60_000)),
    ("n_classes", lambda n: np.full(n, 3)),
    ("squares", lambda n: np.full(n, np.nan)),
    ("squares", lambda n: np.full(n, 1e-4)),
    ("squares", lambda n: np.full(n, 9.0)),
    ("squares", lambda n: np.full(n, 0.05)),
    ("true_surprise", lambda n: np.full(n, -1.0)),
    ("method", lambda n: ["clap"] * n),
    ("squares", lambda n: [None] * n),
)
def change_answers(folder, change):
    name, values = change

    def changed(table):
        kind = table.schema.field(name).type
        return table.set_column(table.column_names.index(name), name, pa.array(values(len(table))).cast(kind))

    edit_answers(folder, changed)


@attack("numbers of answers", lambda table: table.slice(1), lambda table: pa.concat_tables([table, table]))
def change_number(folder, change):
    edit_answers(folder, change)


@attack("answers of one cell stand for another")
def moved_answers(folder):
    first, second = sorted((folder / "records" / "answers").rglob("*.parquet"))[:2]
    table, place = pq.read_table(first), second.relative_to(folder / "records").as_posix().rsplit(".", 2)[0]
    second.unlink()
    replace_table(table, folder / "records", place)


@attack(
    "the header",
    lambda header: header | {"hash": "0" * 16},
    lambda header: header | {"features": {}},
    lambda header: header | {"features": dict.fromkeys(header["features"], "0" * 64)},
    lambda header: header | {"study": {}},
    lambda header: header | {"study": header["study"] | {"name": "other"}},
    lambda header: header | {"study": header["study"] | {"dtype": "float64"}},
    lambda header: header | {"study": [1]},
)
def change_header(folder, change):
    write_header(folder / "records", change(read_header(folder / "records")))
    (folder / "records" / "study-copy.json").unlink()


@attack("a header of a billion cells")
def grid_bomb(folder):
    header = read_header(folder / "records")
    many = list(range(1000))
    header["study"]["grids"] = [header["study"]["grids"][0] | {"shots": many, "seeds": many}] * 100
    write_header(folder / "records", header)
    (folder / "records" / "study-copy.json").unlink()


@attack("a header that cannot be read", "{}", "[", "[" * 100_000, "null", '"text"')
def strange_header(folder, text):
    (folder / "records" / "study.json").write_text(text)


@attack("the folder's name", "a b", "..x", "ünicode", "<b>", "-x", "x" * 130)
def rename(folder, name):
    return folder.rename(folder.with_name(name))


@attack("the twin of another entry")
def twin(folder):
    return folder.rename(folder.with_name("twin"))


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    return honest_yard(tmp_path_factory.mktemp("yard"))


def tree(folder: Path) -> dict[str, tuple]:
    """Every file below, with what changes when somebody writes."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_size, path.lstat().st_ino)
        for path in folder.rglob("*")
        if not path.is_dir()
    }


def test_there_are_two_hundred():
    assert len(ATTACKS) >= 200


@pytest.mark.parametrize("name", ATTACKS)
def test_none_is_accepted_and_nothing_is_run_or_written(yard, tmp_path, name):
    """Each in a folder beside the honest one; the page of both shows the honest one alone."""
    folder = shutil.copytree(yard / "submissions" / "pair", tmp_path / "submissions" / "attack")
    if "twin" in name:
        shutil.copytree(yard / "submissions" / "pair", tmp_path / "submissions" / "pair")
    given = ATTACKS[name](folder)
    folder = given if isinstance(given, Path) and given.is_dir() and given.parent == folder.parent else folder
    before = tree(tmp_path) | tree(yard)
    command = ["board", "check", str(folder), "--study", str(yard / "small.toml"), "--features", str(FEATURES)]
    with chdir(tmp_path):
        done = CliRunner().invoke(app, [*command, "--recompute", "1", "--workers", "1"])
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit), done.exception
    first, reason, *_ = done.stdout.splitlines()
    assert first.endswith(": refused"), done.output
    assert len(reason) < 700
    assert "Traceback" not in done.output
    assert tree(tmp_path) | tree(yard) == before
    assert not list(tmp_path.rglob(CANARY))
