"""How a folder of pictures is laid out: which part teaches, which part tests, and what looks like a mistake."""

from dataclasses import dataclass
from pathlib import Path

from kshot.encode.pictures import list_pictures
from kshot.errors import InputError

TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")
# Names that people give to collections of pictures, and hardly ever to what a picture shows.
_COLLECTIONS = (
    "photos photo pictures picture images image img imgs data dataset datasets new old raw originals unsorted misc "
    "download downloads dcim camera export exports labelled labeled unlabelled unlabeled"
)
COLLECTIONS = frozenset(_COLLECTIONS.split())
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder that teaches, the one that tests where there is one, and what a person should know."""

    teaches: Path
    tests: Path | None
    notes: tuple[str, ...]


def folder_layout(root: Path) -> Layout:
    """ROOT/CLASS/picture, or ROOT/train/CLASS/picture beside ROOT/test/CLASS/picture; what looks like neither is told.

    One level too high is refused, because every class would be a mixture of all.
    """
    folders = {path.name.lower(): path for path in visible_folders(root)}
    teaches = next((folders[name] for name in TRAIN if name in folders), None)
    tests = next((folders[name] for name in TEST if name in folders), None)
    if teaches is not None and len(visible_folders(teaches)) > 1 and folders.keys() <= {*TRAIN, *TEST}:
        used = (
            f"learns from {teaches.name}/ and is tested on {tests.name}/" if tests else f"learns from {teaches.name}/"
        )
        return Layout(teaches, tests, (f"{root}: {used}.", *_loose(teaches)))
    _refuse_one_level_too_high(root, list(folders.values()))
    return Layout(root, None, (*_loose(root), *_odd_names(folders)))


def visible_folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def majority_note(counts: list[int], classes: tuple[str, ...], low: float) -> str:
    """A warning where always naming the largest class would do about as well; `low` is the accuracy's lower end."""
    share = max(counts) / sum(counts)
    if share < low or share <= 1 / len(counts):
        return ""
    name = classes[counts.index(max(counts))]
    return (
        f"always answering {name} would be right for {100 * share:.0f} % of these pictures, so the accuracy alone "
        "shows little: look at the classes one by one."
    )


def _refuse_one_level_too_high(root: Path, folders: list[Path]) -> None:
    """Folders that hold folders of pictures, and no pictures of their own, are collections and not classes."""
    nested = [folder for folder in folders if _holds_classes(folder)]
    if nested and (len(nested) == len(folders) == 1 or _all_collections(folders)):
        likely = max(nested, key=lambda folder: (len(visible_folders(folder)), folder.name))
        raise InputError(
            f"{root} looks one level too high: its folders ({', '.join(f.name for f in folders[:MOST_NAMED])}) hold "
            f"folders of pictures. Did you mean {likely}?"
        )


def _all_collections(folders: list[Path]) -> bool:
    return all(folder.name.lower() in COLLECTIONS.union(TRAIN, TEST) for folder in folders)


def _holds_classes(folder: Path) -> bool:
    inside = [path for path in visible_folders(folder) if list_pictures(path)]
    return len(inside) > 1 and len(list_pictures(folder)) == sum(len(list_pictures(path)) for path in inside)


def _loose(root: Path) -> tuple[str, ...]:
    loose = [path.name for path in list_pictures(root) if path.parent == root]
    if not loose:
        return ()
    named = ", ".join(loose[:MOST_NAMED]) + (" …" if len(loose) > MOST_NAMED else "")
    return (f"{len(loose)} pictures lie in {root} itself and belong to no class: {named}. They are not used.",)


def _odd_names(folders: dict[str, Path]) -> tuple[str, ...]:
    odd = [path.name for name, path in folders.items() if name in COLLECTIONS]
    if not odd:
        return ()
    what = "looks like a collection" if len(odd) == 1 else "look like collections"
    return (f"{', '.join(odd)} {what}, not like a class: the folders' names are what the head learns to say.",)
