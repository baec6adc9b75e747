"""Labels in a CSV file instead of folders."""

import shutil

import pytest

from kshot.errors import InputError
from kshot.pictures.labels import labelled_photos


@pytest.fixture
def flat(shades, tmp_path):
    """The pictures of all classes in one folder, and the class of each."""
    labels = {}
    for path in sorted(shades.rglob("*.png")):
        target = tmp_path / "flat" / "désert" / f"{path.parent.name}-{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        labels[f"désert/{target.name}"] = path.parent.name
    return tmp_path / "flat", labels


def read(root, text):
    file = root.parent / "labels.csv"
    file.write_text(text, encoding="utf-8")
    folder = labelled_photos(root, file)
    return {photo.name: photo.label for photo in folder.photos}, folder.unused


def test_a_head_from_labels_is_the_head_from_folders(shades, flat, fit, tmp_path):
    root, labels = flat
    (tmp_path / "labels.csv").write_text("path,label\n" + "".join(f"{n},{c}\n" for n, c in labels.items()))
    ours, theirs = fit(root, labels=tmp_path / "labels.csv").head, fit(shades).head
    assert ours.about.classes == theirs.about.classes
    assert (ours.head.coef_ == theirs.head.coef_).all()


def test_paths_are_below_the_folder_or_names_of_one_picture(flat):
    (flat[0] / "twice").mkdir()
    shutil.copy(flat[0] / "désert/red-1.png", flat[0] / "twice")
    labels, unused = read(flat[0], "Label,Path\nred,red-0.png\nblue,./désert/blue-1.png\nred,red-1.png\nred,\n")
    assert labels == {"désert/red-0.png": "red", "désert/blue-1.png": "blue"}
    assert "red-1.png" in unused[0]
    assert "11 pictures have no label" in unused[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,kind\na,b\n", "columns path,label"),
        ("", "columns path,label"),
        ("path,label\n../../etc/passwd,x\nnowhere.png,y\n", "Not found there"),
        ("path,label\ndésert/red-0.png,x\ndésert/red-0.png,y\n", "two labels"),
        ('path,label\n"' + "x" * 200_000, "not a readable CSV file"),
    ],
)
def test_files_that_are_none_are_one_sentence(flat, text, words):
    with pytest.raises(InputError, match=words):
        read(flat[0], text)
