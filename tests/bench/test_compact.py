import shutil
from pathlib import Path

import pytest
from kshot.bench.compact import compact, forget
from kshot.bench.work import finished_cells

from folders import fill
from kshot.bench.diff import compare
from kshot.bench.record import CELL
from kshot.bench.records import Records, load_table
from kshot.bench.status import failed_cells, run_status
from kshot.bench.study import Cell, load_study
from kshot.errors import StudyError


def test_every_row_is_kept_and_nothing_is_missing(records):
    before = load_table(records.folder)
    assert compact(records) == 12
    assert not records.loose()
    assert len(records.joined()) == 1
    assert load_table(records.folder).equals(before)
    assert finished_cells(records) == set(records.study().cells())
    assert run_status(records.folder).missing == 0
    assert compact(records) == 0


def test_a_crash_before_the_sources_are_deleted_counts_nothing_twice(records, monkeypatch):
    before = load_table(records.folder)
    copies = records.folder.parent / "copies"
    shutil.copytree(records.folder / "cells", copies)
    compact(records)
    shutil.copytree(copies, records.folder / "cells", dirs_exist_ok=True)
    assert load_table(records.folder).equals(before)
    assert compact(records) == 13
    assert load_table(records.folder).equals(before)


def test_compacting_again_joins_what_came_later(records):
    before = load_table(records.folder)
    later = Cell("sim-pets", "simulated", "dataset", 1, 0)
    [path] = records.cell_files(later)
    kept = path.read_bytes()
    path.unlink()
    compact(records)
    path.write_bytes(kept)
    assert compact(records) == 2
    assert load_table(records.folder).equals(before)


def test_forgetting_a_compacted_cell_makes_it_missing(records):
    gone = Cell("sim-pets", "simulated", "dataset", 2, 1)
    compact(records)
    forget(records, [gone])
    assert gone not in finished_cells(records)
    assert run_status(records.folder).missing == 1
    assert failed_cells(records) == []


def test_diff_finds_what_moved(records, folder):
    same = compare(records.folder, records.folder)
    assert same.same
    assert same.circumstances == {}
    study = load_study("small.toml").in_precision("float64")
    other = Records(folder / "double")
    fill(study, folder / "features", other)
    found = compare(records.folder, other.folder)
    assert found.circumstances["dtype"] == (["float32"], ["float64"])
    assert {move.of for move in found.moves} == {"zero_shot", "ncm", "loo_blend"}
    assert all(abs(move.largest_change) < 0.5 for move in found.moves)
    hits = [
        {tuple(row[name] for name in (*CELL, "method")): row["hits"] for row in load_table(each.folder).to_pylist()}
        for each in (records, other)
    ]
    unmoved = sum(hits[0][key] == hits[1][key] for key in hits[0])
    assert unmoved > 12
    assert sum(move.identical for move in found.moves) == unmoved
    other.cell_files(Cell("sim-pets", "simulated", "dataset", 2, 1))[0].unlink()
    assert compare(records.folder, other.folder).only_first == 3


def test_files_joined_by_another_process_while_they_are_read(records, monkeypatch):
    before = load_table(records.folder)
    listed = Records.joined

    def joined_meanwhile(self):
        monkeypatch.setattr(Records, "joined", listed)
        compact(records)
        return []

    monkeypatch.setattr(Records, "joined", joined_meanwhile)
    assert load_table(records.folder).equals(before)
    assert not records.loose()


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("{", "Expecting property name"),
        ("[1]", "not a mapping"),
        ("{}", "it lacks hash, study, dropped, features"),
        ('{"hash": "", "study": {}, "dropped": [], "features": {}}', "it holds no study: KeyError 'grids'"),
        ('{"hash": "", "study": {"grids": [3]}, "dropped": [], "features": {}}', "it holds no study"),
    ],
)
def test_a_damaged_header_is_said(tmp_path, header, why):
    (tmp_path / "study.json").write_text(header)
    with pytest.raises(StudyError, match=rf"study.json is damaged \(.*{why}.*Choose another --records"):
        run_status(tmp_path)


def test_no_page_tells_readers_to_open_the_files_themselves():
    """Whoever names files sees the loose cells or the joined ones, never all."""
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *root.glob("docs/*.md")]
    assert [page.name for page in pages if "*.parquet" in page.read_text()] == []
