"""Damage to files of records is noticed, told by name and computed again; folders' names change no number."""

import logging
import shutil

import pyarrow as pa
import pytest
from kshot.bench.compact import compact

from folders import comparable
from kshot.bench.record import contradictory_rows
from kshot.bench.records import Records, load_table
from kshot.bench.run import ThisProcess, compute, open_run
from kshot.bench.status import run_status
from kshot.bench.study import load_study


def overwritten(content):
    """Everything but what a reader looks at first: the magic bytes and the footer, whose length stands at the end."""
    footer = int.from_bytes(content[-8:-4], "little") + 8
    return content[:4] + b"\xff" * (len(content) - 4 - footer) + content[-footer:]


DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "emptied": lambda content: b"",
    "one bit": lambda content: content[:99] + bytes([content[99] ^ 1]) + content[100:],
    "overwritten": overwritten,
}


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_counts_as_missing_and_is_computed_again(records, folder, damage, joined, caplog):
    before = comparable(records.folder)
    if joined:
        compact(records)
    path = (records.joined() or records.loose())[-1]
    path.write_bytes(damage(path.read_bytes()))
    lost = 12 if joined else 1
    with caplog.at_level(logging.WARNING):
        assert run_status(records.folder).missing == lost
    assert str(path) in caplog.text
    work = open_run(load_study("small.toml"), folder / "features", records)
    assert len(work.missing) == lost
    assert list((records.folder / "damaged").iterdir()), "what was there is kept for whoever wants to know"
    compute(work, folder / "features", records, ThisProcess())
    assert comparable(records.folder).equals(before)


@pytest.mark.parametrize("name", ["seed=7", "accuracy=1", "a*b", "what?", "br[ab]ce", "~home", "it's"])
def test_a_folder_s_name_changes_no_number(records, tmp_path, name):
    before = load_table(records.folder)
    elsewhere = tmp_path / name / "records"
    shutil.copytree(records.folder, elsewhere)
    (tmp_path / "axxb").mkdir()
    assert load_table(elsewhere).equals(before)
    compact(Records(elsewhere))
    assert load_table(elsewhere).equals(before)


@pytest.mark.parametrize(
    ("column", "change"), [("accuracy", 0.1), ("n_correct", 1), ("n_test", 8)], ids=lambda value: str(value)
)
def test_accuracy_counts_and_hits_must_say_the_same(records, column, change):
    table = load_table(records.folder)
    assert not len(contradictory_rows(table))
    row = table["status"].to_pylist().index("ok")
    values = table[column].to_pylist()
    values[row] += change
    field = table.schema.field(column)
    changed = table.set_column(table.schema.get_field_index(column), field, pa.array(values, field.type))
    assert contradictory_rows(changed).tolist() == [row]
