"""Six classes of public-domain drawings that come with the package, for the tutorial and the tests."""

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from kshot.errors import InputError


def copy_sample(target: Path) -> int:
    """TARGET/photos/CLASS/… to learn from, TARGET/new/… to try; returns how many pictures there are."""
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise InputError(f"{target} exists and is not empty. Name another folder.")
    with as_file(files("kshot.apply").joinpath("sample")) as source:
        shutil.copytree(source, target, dirs_exist_ok=True)
    return sum(1 for _ in target.rglob("*.png"))
