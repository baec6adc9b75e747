"""A records folder is held to what it says, mended by one command, and a run looks back before it says finished."""

import json
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kshot.bench.check import check_records, repair_records
from kshot.bench.compact import compact

from folders import comparable, fill
from kshot.bench.records import cell_place
from kshot.bench.run import ThisProcess, check_finished, compute, open_run
from kshot.bench.study import load_study
from kshot.errors import StudyError
from kshot.files import place_of, write_table


def kshot(*arguments):
    return subprocess.run([sys.executable, "-m", "kshot", *arguments], capture_output=True, text=True)


def complaints(folder):
    return [finding.what for finding in check_records(folder) if not finding.passed]


def rewritten(records, path, change):
    """The file with other numbers and a name that fits them, as a strange tool might write it."""
    table = pq.ParquetFile(path).read()
    path.unlink()
    changed = pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)
    write_table(changed, records.folder, place_of(records.folder, path))


def more_accurate(rows):
    return [{**row, "accuracy": 1.0} for row in rows]


def of_another_study(rows):
    return [{**row, "study_hash": "f" * 16} for row in rows]


def unknown_seed(rows):
    return [{**row, "seed": 99} for row in rows]


def test_a_sound_folder_passes_loose_and_joined(records):
    assert not complaints(records.folder)
    compact(records)
    assert not complaints(records.folder)
    assert repair_records(records.folder) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (more_accurate, "accuracy, counts and hits"),
        (of_another_study, "another study"),
        (unknown_seed, "does not have"),
    ],
)
def test_rows_that_cannot_be_are_found_and_set_aside(records, folder, change, why):
    before = comparable(records.folder)
    rewritten(records, records.loose()[0], change)
    assert any(why in sentence for sentence in complaints(records.folder))
    assert any("moved to" in sentence for sentence in repair_records(records.folder))
    assert not complaints(records.folder)
    fill(load_study("small.toml"), folder / "features", records)
    assert comparable(records.folder).equals(before)


def test_a_file_under_another_cells_name_is_damaged(records, folder):
    before = comparable(records.folder)
    first, second = records.loose()[:2]
    shutil.copy(first, second)
    assert len(records.loose()) == 11
    work = open_run(load_study("small.toml"), folder / "features", records)
    assert [cell_place(cell) for cell in work.missing] == [place_of(records.folder, second)]
    compute(work, folder / "features", records, ThisProcess())
    assert comparable(records.folder).equals(before)


def test_copies_are_counted_and_contradicting_ones_forgotten(records, tmp_path):
    before = comparable(records.folder)
    kept = {path: path.read_bytes() for path in records.loose()[:2]}
    compact(records)
    for path, content in kept.items():
        path.write_bytes(content)
    assert not complaints(records.folder), "copies are no fault"
    assert any("6 record(s) that lay in several" in sentence for sentence in repair_records(records.folder))
    assert not records.loose()
    assert comparable(records.folder).equals(before)
    (path, content), *_ = kept.items()
    path.write_bytes(content)
    rewritten(records, path, lambda rows: [{**row, "title": "other"} for row in rows])
    assert any("1 cell(s) with different numbers" in sentence for sentence in complaints(records.folder))
    repair_records(records.folder)
    assert not complaints(records.folder)
    assert len(comparable(records.folder)) == len(before) - 3


@pytest.mark.parametrize("loss", ["deleted", "cut", "one letter"])
def test_a_lost_header_comes_back(records, folder, loss):
    before = json.loads(records.header.read_text())
    text = records.header.read_text()
    changed = {"cut": text[:50], "one letter": text.replace("sim-pets", "sim-pfts", 1)}
    records.header.unlink() if loss == "deleted" else records.header.write_text(changed[loss])
    refused = kshot("status", "records")
    assert refused.returncode == 2
    assert "kshot records check records --repair" in refused.stderr
    assert kshot("records", "check", "records").returncode == 2
    repaired = kshot("records", "check", "records", "--repair")
    assert repaired.returncode == 0, repaired.stderr
    assert "brought back" in repaired.stdout
    assert json.loads(records.header.read_text()) == before


def test_without_the_copy_too_the_study_that_the_records_name_may_go_on(records, folder):
    header = json.loads(records.header.read_text())
    for name in ("study.json", "study-copy.json"):
        (records.folder / name).unlink()
    with pytest.raises(StudyError, match="kshot run STUDY --records"):
        repair_records(records.folder)
    (folder / "other.toml").write_text((folder / "small.toml").read_text().replace("[0, 1, 2]", "[0, 1, 2, 3]"))
    with pytest.raises(StudyError, match="not a records folder"):
        open_run(load_study("other.toml"), folder / "features", records)
    work = open_run(load_study("small.toml"), folder / "features", records)
    assert not work.missing
    assert json.loads(records.header.read_text()) == header


def test_a_run_looks_back_before_it_says_finished(records, folder, caplog):
    work = open_run(load_study("small.toml"), folder / "features", records)
    check_finished(work, records)
    records.header.unlink()
    check_finished(work, records)
    assert "was removed during the run" in caplog.text
    assert records.study() == load_study("small.toml")
    records.loose()[3].unlink()
    with pytest.raises(StudyError, match="not finished: 1 of 12 cells are missing"):
        check_finished(work, records)
