"""A small board in a folder: kept records of four heads, and submissions of the outside heads of `strange_heads`."""

import shutil
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from kshot.board.submission import read_submission
from kshot.board.submit import submit

import kshot
from kshot.bench.records import Records, cell_place, load_table
from kshot.bench.run import ThisProcess
from kshot.bench.study import Cell, load_study
from kshot.files import replace_table, sha256, write_text
from kshot.stats.answers import answers_table

STUDY = """\
name = "small"
datasets = ["cifar10", "tuxpaint"]
backbones = ["lite0"]
tiers = ["dataset"]
shots = [2, 4]
seeds = [0, 1]
methods = ["zero_shot", "ncm", "clap", "oracle_lambda"]
"""
ABOUT = """\
name = "{name}"
authors = ["A. Tester", "B. Tester"]
link = "https://example.org/{name}"
licence = "MIT"
date = "{date}"
hyperparameters = "published"
extra_data = "none"
hardware = "two cores"
"""
FEATURES = Path("no-features-but-the-bundled")


def make_yard(folder: Path) -> None:
    """Writes the study, the heads and the records of kshot's own heads."""
    (folder / "small.toml").write_text(STUDY)
    shutil.copy(Path(__file__).with_name("strange_heads.py"), folder / "yard_heads.py")
    kshot.run(folder / "small.toml", records=folder / "kept", features=FEATURES, workers=1)


def honest_yard(folder: Path) -> Path:
    """A yard with one honest submission."""
    make_yard(folder)
    submission_of(folder, "Pair", "pair")
    return folder


def submission_of(yard: Path, head: str, name: str, date: str = "2026-11-18") -> Path:
    about = yard / f"{name}.toml"
    about.write_text(ABOUT.format(name=name, date=date))
    with chdir(yard):
        output = yard / "submissions" / name
        return submit(f"yard_heads:{head}", yard / "small.toml", output, FEATURES, ThisProcess(), about)


def study(yard: Path):
    return load_study(yard / "small.toml")


def edit_records(folder: Path, change) -> None:
    """Rewrites the records as an honest tool would: `change` takes and gives rows."""
    records = folder / "records"
    table = load_table(records)
    rows = change(table.to_pylist())
    shutil.rmtree(records / "compact")
    replace_table(pa.Table.from_pylist(rows, schema=table.schema), records, "compact/joined")


def edit_answers(folder: Path, change) -> None:
    """Rewrites the answers of the first cell: `change` takes and gives an arrow table."""
    (path, *_) = sorted((folder / "records" / "answers").rglob("*.parquet"))
    place = path.relative_to(folder / "records").as_posix().rsplit(".", 2)[0]
    table = change(pq.read_table(path, partitioning=None))
    path.unlink()
    replace_table(table, folder / "records", place)


def swap_wheel(folder: Path, content: bytes) -> None:
    """Another wheel under the same name, and its hash in entry.json."""
    (wheel,) = folder.glob("*.whl")
    before = read_submission(folder).entry
    wheel.write_bytes(content)
    write_text(folder / "entry.json", replace(before, wheel_sha256=sha256(wheel)).to_json())


def raise_results(folder: Path, with_answers: bool) -> None:
    """Ten more hits in every cell; consistent in every file where the answers are edited too."""

    def better(rows):
        for row in rows:
            hits = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: row["n_test"]]
            hits[np.flatnonzero(hits == 0)[:10]] = 1
            row["hits"] = np.packbits(hits).tobytes()
            row["n_correct"], row["accuracy"] = int(hits.sum()), float(hits.mean())
        return rows

    edit_records(folder, better)
    if not with_answers:
        return
    records = Records(folder / "records")
    method = read_submission(folder).entry.method
    for row in load_table(records.folder).to_pylist():
        cell = Cell(*(row[name] for name in ("dataset", "backbone", "tier", "shots", "seed", "profile")))
        kept = records.answers(cell)[method]
        hits = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: row["n_test"]].astype(bool)
        turned = hits & ~kept.hits
        surprise = np.where(turned, kept.top_surprise, kept.true_surprise)
        made = replace(kept, predicted=np.where(turned, kept.truth, kept.predicted), true_surprise=surprise)
        replace_table(answers_table({method: made}), records.folder, cell_place(cell, "answers"))
