"""Datasets saved by the `datasets` library: `saved` was written by version 5.2.0 of it, and is read without it."""

import io
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from kshot.encode.sources import find_source
from kshot.errors import InputError
from picture_sets import CLASSES, picture

SAVED = Path(__file__).parent / "saved"
# How many pictures each split was given, and the number of its first one.
SPLITS = {"train": (9, 0), "validation": (3, 100), "test": (6, 200)}


def pictures(source):
    return [p for shard in source.shards() for p in source.pictures(shard)]


def pixels(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("layout", ["dict", "parquet"])
def test_splits_become_parts_and_rows_keep_their_pictures(layout):
    source = find_source(str(SAVED / layout))
    assert source.classes == CLASSES
    found = {p.id: p for p in pictures(source)}
    assert Counter(p.part for p in found.values()) == {"pool": 9, "val": 3, "test": 6}
    for split, (rows, first) in SPLITS.items():
        for row in range(rows):
            own = found[f"{split}/{row:07d}"]
            assert own.label == row % 3
            np.testing.assert_array_equal(np.asarray(own.load()), pixels(picture(row % 3, first + row, (12, 9))))


def test_both_layouts_and_any_number_of_files_give_the_same_ids():
    one, two = (find_source(str(SAVED / layout)) for layout in ("dict", "parquet"))
    assert [(p.id, p.label) for p in pictures(one)] == [(p.id, p.label) for p in pictures(two)]
    assert len([s for s in one.shards() if s.part == "pool"]) == 2


def test_one_split_is_one_part():
    assert {p.part for p in pictures(find_source(str(SAVED / "one")))} == {"all"}


def test_validation_is_the_test_where_there_is_no_other(tmp_path):
    shutil.copytree(SAVED / "parquet", tmp_path / "set")
    (tmp_path / "set" / "data" / "test-00000-of-00001.parquet").unlink()
    assert {p.part for p in pictures(find_source(str(tmp_path / "set")))} == {"pool", "test"}


def table(labels, **columns):
    images = [picture(0, row) for row in range(len(labels))]
    return pa.table({"image": images, "label": labels, **columns})


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["dog", "cat", "dog"], ("cat", "dog"), [1, 0, 1]),
        (["dog ", "cat", "dog"], ("cat", "dog"), [1, 0, 1]),
        ([2, 0, 1], ("0", "1", "2"), [2, 0, 1]),
        ([10, 2, 1], ("1", "2", "10"), [2, 1, 0]),
    ],
)
def test_words_and_bare_numbers_as_labels(tmp_path, labels, classes, numbers):
    pq.write_table(table(labels), tmp_path / "rows.parquet")
    source = find_source(str(tmp_path))
    assert source.classes == classes
    assert [p.label for p in pictures(source)] == numbers


def test_row_groups_are_shards_and_another_file_is_another_shard(tmp_path):
    pq.write_table(table([0, 1, 0, 1]), tmp_path / "rows.parquet", row_group_size=2)
    before = find_source(str(tmp_path))
    assert [p.id for p in before.pictures(before.shards()[1])] == ["all/0000002", "all/0000003"]
    pq.write_table(table([0, 1, 0, 1, 1]), tmp_path / "rows.parquet", row_group_size=2)
    assert not set(before.shards()) & set(find_source(str(tmp_path)).shards())


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (table([0, -1]), "neither class numbers nor words"),
        (table([0, None]), "neither class numbers nor words"),
        (table([0.5, 1.5]), "neither class numbers nor words"),
        (table([0, 1]).drop_columns("image"), "which holds the images"),
        (
            table([0, 1], coarse=[0, 1]).rename_columns(["image", "fine", "coarse"]),
            "columns image, fine, coarse; which holds the labels",
        ),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, made, says):
    pq.write_table(made, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=says):
        find_source(str(tmp_path))


def test_paths_without_pictures_and_labels_beyond_the_names(tmp_path):
    paths = pa.array([{"bytes": None, "path": "a.png"}], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    pq.write_table(pa.table({"image": paths, "label": [0]}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="holds no picture, only a path"):
        pictures(find_source(str(tmp_path)))
    named = pq.read_table(SAVED / "parquet" / "data" / "train-00000-of-00001.parquet")
    wrong = named.set_column(1, named.schema.field("label"), pa.array([-1] * 9))
    pq.write_table(wrong, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="all/0000000 has the label -1, which is no class"):
        pictures(find_source(str(tmp_path)))


@pytest.mark.parametrize("name", ["broken.parquet", "broken.arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else", b"\xff\xff\xff\xff\x10"])
def test_files_that_are_broken_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name} cannot be read as a saved dataset"):
        find_source(str(tmp_path))


def test_a_split_of_another_name_beside_others(tmp_path):
    for split in ("train", "extra"):
        (tmp_path / split).mkdir()
        pq.write_table(table([0, 1]), tmp_path / split / "rows.parquet")
    with pytest.raises(InputError, match="splits all, train; needed are train and one of test, validation"):
        find_source(str(tmp_path))
