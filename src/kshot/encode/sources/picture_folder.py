"""A folder of pictures: ROOT/CLASS/picture, or ROOT/{train,test}/CLASS/picture."""

from functools import partial
from pathlib import Path

from kshot.encode.pictures import decode, list_pictures
from kshot.encode.sources.source import Listed, Picture, readable_class
from kshot.errors import InputError

PARTS = {"train": "pool", "pool": "pool", "test": "test", "val": "test"}


def folder_source(root: Path) -> Listed:
    """Pictures in the order of their paths, which are their ids; without train and test all are one part."""
    splits = {name: root / name for name in PARTS if (root / name).is_dir()}
    parts = {PARTS[name]: path for name, path in splits.items()}
    if splits and (len(parts) < len(splits) or len(parts) < 2):
        raise InputError(f"{root} has {', '.join(splits)}; needed are one of train, pool and one of test, val.")
    pictures = {
        path: (part, path.relative_to(base).parts[0])
        for part, base in (parts or {"all": root}).items()
        for path in list_pictures(base)
        if path.parent != base
    }
    folders = sorted({name for _, name in pictures.values()})
    classes: dict[str, str] = {}
    for folder in folders:
        if (other := classes.setdefault(readable_class(folder), folder)) != folder:
            raise InputError(
                f"folders {other} and {folder} would both be class '{readable_class(folder)}'. Rename one."
            )
    label = {name: number for number, name in enumerate(folders)}
    rows = [
        Picture(part, path.relative_to(root).as_posix(), label[name], partial(decode, path, str(path)))
        for path, (part, name) in pictures.items()
    ]
    return Listed(str(root), tuple(classes), rows)
