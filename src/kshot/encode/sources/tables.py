"""A dataset that the `datasets` library saved (`save_to_disk`, `to_parquet`), read by pyarrow alone.

ROOT/*.arrow or *.parquet for one split, ROOT/SPLIT/… or SPLIT-00000-of-00002.parquet at any depth for several. The
pictures are a column of bytes, the labels numbers with names in the schema, plain numbers, or words.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kshot.encode.pictures import decode
from kshot.encode.sources.source import Picture, PictureShard, image_and_label, numbered_classes
from kshot.errors import InputError, first_line

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS = {"train": "train", "test": "test"} | dict.fromkeys(("validation", "valid", "val", "dev"), "validation")
SUFFIXES = (".arrow", ".parquet")


class Chunk(NamedTuple):
    """A batch of an arrow file or a row group of a parquet file; `start` is its first row in the split."""

    split: str
    file: Path
    number: int
    start: int


@dataclass(frozen=True)
class SavedTables:
    """Pictures are known by split and row; `numbers` are the class numbers of the labels."""

    origin: str
    classes: tuple[str, ...]
    numbers: dict[Any, int]
    chunks: dict[PictureShard, Chunk]
    image: str
    label: str
    templates: tuple[str, ...] = ()

    def shards(self) -> list[PictureShard]:
        return list(self.chunks)

    def pictures(self, shard: PictureShard) -> Iterator[Picture]:
        split, file, number, start = self.chunks[shard]
        with _named(file):
            table = _open(file)[1][number]([self.image, self.label])
        for row, (value, given) in enumerate(zip(table[self.image], table[self.label], strict=True), start=start):
            name, found = f"{split}/{row:07d}", given.as_py()
            label = self.numbers.get(found)
            if label is None:
                raise InputError(f"{file}: {name} has the label {found}, which is no class.")
            where = f"{file}: {name}"
            yield Picture(shard.part, name, label, partial(decode, _content(value.as_py(), where), where))


def find_tables(root: Path) -> dict[str, list[Path]]:
    """The files of each split, in order; none where the folder holds other things."""
    found: dict[str, list[Path]] = {}
    for path in sorted(path for suffix in SUFFIXES for path in root.rglob(f"*{suffix}")):
        words = (path.name.split("-")[0].removesuffix(path.suffix), *path.relative_to(root).parts[:-1])
        split = next((SPLITS[word] for word in words if word in SPLITS), "all")
        found.setdefault(split, []).append(path)
    return found


def table_source(root: Path, tables: dict[str, list[Path]]) -> SavedTables:
    """Read the schema and the labels; pictures are read when they are asked for."""
    schema, _ = _open(next(iter(tables.values()))[0])
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    types = {name: features.get(name, {}).get("_type", "") for name in schema.names}
    pictures = {name: "Image" for name in schema.names if _holds_pictures(schema.field(name).type)}
    image, label = image_and_label(root, types | pictures)
    parts, chunks, labels = split_parts(root, set(tables)), {}, set()
    for split, files in tables.items():
        start = 0
        for file in files:
            for number, read in enumerate(_open(file)[1]):
                with _named(file):
                    column = read([label])[label]
                key = f"{split}/{file.name}#{number}-{start}-{len(column)}-{file.stat().st_size}"
                chunks[PictureShard(parts[split], key)] = Chunk(split, file, number, start)
                labels |= set(column.unique().to_pylist())
                start += len(column)
    classes, numbers = numbered_classes(features.get(label, {}).get("names"), labels, root)
    return SavedTables(str(root), classes, numbers, chunks, image, label)


def split_parts(where: Path | str, splits: set[str]) -> dict[str, str]:
    """Train becomes the pool; validation becomes the test part where there is no test split."""
    if len(splits) == 1:
        return dict.fromkeys(splits, "all")
    if "train" not in splits or not splits <= set(SPLITS.values()):
        found = ", ".join(sorted(splits))
        raise InputError(f"{where} has the splits {found}; needed are train and one of test, validation.")
    return {"train": "pool", "test": "test", "validation": "val" if "test" in splits else "test"}


def _holds_pictures(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    inner = kind.field("bytes").type if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 else kind
    return pa.types.is_binary(inner) or pa.types.is_large_binary(inner)


def _content(value: Any, where: str) -> bytes:
    content = value.get("bytes") if isinstance(value, dict) else value
    if content is None:
        raise InputError(f"{where} holds no picture, only a path. Save the dataset with to_parquet.")
    return content


def _open(file: Path) -> "tuple[pa.Schema, list[Callable[[list[str]], pa.Table]]]":
    """The schema, and a function for each chunk that reads the columns it is given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _named(file):
        if file.suffix == ".parquet":
            parquet = pq.ParquetFile(file)
            return parquet.schema_arrow, [partial(parquet.read_row_group, n) for n in range(parquet.num_row_groups)]
        batches = pa.ipc.open_stream(pa.memory_map(str(file))).read_all().to_batches()
        return batches[0].schema, [pa.Table.from_batches([batch]).select for batch in batches]


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Name the file in pyarrow's errors."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, LookupError) as error:
        raise InputError(f"{file} cannot be read as a saved dataset: {first_line(error)}") from None
