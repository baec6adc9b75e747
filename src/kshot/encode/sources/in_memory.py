"""Datasets in memory: of the `datasets` library, of torchvision, and pandas frames of paths and labels.

They are recognised by their attributes, so none of these libraries is imported here.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kshot.encode.pictures import decode, on_white, rgb_as_seen
from kshot.encode.sources.picture_files import PARTS
from kshot.encode.sources.source import Listed, Picture, image_and_label, numbered_classes
from kshot.encode.sources.tables import SPLITS, split_parts
from kshot.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

ALLOWED = (
    "Give a folder, a datasets.Dataset or DatasetDict, a torchvision dataset, a pandas frame with the columns path and "
    "label, or a dict of them by split."
)


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """A picture in memory that can be read like a file; `get` returns it as a picture of Pillow."""

    name: str
    get: Callable[[], Any]

    def load(self) -> "Image":
        """RGB on white, as the published pipelines read it."""
        return on_white(self._picture())

    def read_bytes(self) -> bytes:
        """A PNG of what a viewer shows."""
        out = io.BytesIO()
        rgb_as_seen(self._picture(), self.name).save(out, "PNG", compress_level=1)
        return out.getvalue()

    def _picture(self) -> "Image":
        found = self.get()
        if not hasattr(found, "getbands"):
            raise InputError(
                f"{self.name} is a {type(found).__name__}, not a picture of Pillow. Make the dataset without a "
                "transform: kshot prepares pictures as their encoder needs them."
            )
        return found

    def __str__(self) -> str:
        return self.name


class MemoryRow(NamedTuple):
    """A picture, in memory or at a path, with the number of its class; its name or path is its id."""

    part: str
    label: int
    picture: Path | MemoryPicture


class MemoryDataset(NamedTuple):
    """Class names, and all pictures in their order."""

    classes: tuple[str, ...]
    rows: list[MemoryRow]

    def source(self, origin: str) -> Listed:
        """The dataset as something to encode."""
        pictures = [
            Picture(part, str(file), label, partial(decode, file, str(file)) if isinstance(file, Path) else file.load)
            for part, label, file in self.rows
        ]
        return Listed(origin, self.classes, pictures)


class _Split(NamedTuple):
    """Labels as numbers or words, the names of the numbers if they are known, and a picture for each label."""

    labels: list[Any]
    names: Sequence[str] | None
    picture: Callable[[int], Path | MemoryPicture]
    parts: list[str] | None = None


def dataset_in_memory(data: Any) -> MemoryDataset:
    """Read the labels of a dataset in memory; pictures are read when they are asked for."""
    # A frame has `items` too, of its columns.
    given = data if isinstance(data, Mapping) else {"all": data}
    splits = {SPLITS.get(str(name), str(name)): own for name, own in given.items()}
    found = {name: _split(own, name) for name, own in splits.items()}
    parts = split_parts("the dataset", set(found))
    names = next((own.names for own in found.values() if own.names is not None), None)
    labels = {label for own in found.values() for label in own.labels}
    classes, numbers = numbered_classes(names, labels, "the dataset")
    rows = []
    for name, own in found.items():
        for row, label in enumerate(own.labels):
            picture = own.picture(row)
            if label not in numbers:
                raise InputError(f"{picture} has the label {label!r}, which is no class.")
            rows.append(MemoryRow(own.parts[row] if own.parts else parts[name], numbers[label], picture))
    if not rows:
        raise InputError(f"the dataset holds no pictures. {ALLOWED}")
    return MemoryDataset(classes, rows)


def _split(data: Any, split: str) -> _Split:
    if hasattr(data, "column_names") and hasattr(data, "features"):
        return _of_datasets(data, split)
    if hasattr(data, "columns") and hasattr(data, "to_dict"):
        return _of_frame(data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return _of_torchvision(data, split)
    raise InputError(f"{type(data).__name__} is no dataset of pictures. {ALLOWED}")


def _of_datasets(data: Any, split: str) -> _Split:
    """A `datasets.Dataset`: one column of pictures, one of labels."""
    kinds = {name: type(kind).__name__ for name, kind in data.features.items()}
    image, label = image_and_label("the dataset", kinds)
    names = getattr(data.features[label], "names", None)

    def picture(row: int) -> MemoryPicture:
        return MemoryPicture(f"{split}/{row:07d}", lambda: data[row][image])

    return _Split(list(data[label]), names, picture)


def _of_torchvision(data: Any, split: str) -> _Split:
    """Pairs of picture and label; labels are read without the pictures where the dataset keeps them."""
    whole, rows = data, list(range(len(data)))
    while hasattr(whole, "dataset") and hasattr(whole, "indices"):  # torch's Subset
        rows, whole = [int(whole.indices[row]) for row in rows], whole.dataset
    if getattr(whole, "target_transform", None) is not None:
        raise InputError(
            "the dataset has a target_transform, which the labels and classes that it keeps do not follow. Make it "
            "without one, or give a pandas frame with the columns path and label."
        )
    kept = next(
        (own for name in ("targets", "_labels", "labels") if (own := getattr(whole, name, None)) is not None), ()
    )
    if len(kept) != len(whole):
        labels = [_pair(data, row)[1] for row in range(len(data))]
    else:
        labels = [kept[row] for row in rows]

    def picture(row: int) -> MemoryPicture:
        return MemoryPicture(f"{split}/{row:07d}", lambda: _pair(data, row)[0])

    plain = [label if isinstance(label, str) else int(label) for label in labels]
    # Of ImageNet each class is a tuple of synonyms.
    names = [name if isinstance(name, str) else name[0] for name in getattr(whole, "classes", None) or ()]
    return _Split(plain, names or None, picture)


def _pair(data: Any, row: int) -> tuple[Any, Any]:
    found = data[row]
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InputError(f"row {row} of the dataset is a {type(found).__name__}, not (picture, label). {ALLOWED}")
    return found[0], found[1]


def _of_frame(data: Any) -> _Split:
    """A frame with a row for each picture; paths are relative to the current folder, `part` is train or test."""
    if any(name not in data.columns for name in ("path", "label")):
        shown = ", ".join(map(str, data.columns))
        raise InputError(f"the frame has the columns {shown}; needed are path, label and optionally part.")
    paths = [Path(str(path)) for path in data["path"]]
    labels = data["label"].tolist()
    parts = list(data["part"]) if "part" in data.columns else None
    if parts is not None and (strange := next((part for part in parts if part not in PARTS), None)) is not None:
        raise InputError(f"the frame has the part {strange!r}; allowed are {', '.join(PARTS)}.")
    return _Split(labels, None, paths.__getitem__, parts and [PARTS[part] for part in parts])
