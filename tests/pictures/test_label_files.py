"""Labels of other programs, in their published forms; what we write is read back the same."""

import json
import shutil

import pytest

from kshot.errors import InputError
from kshot.pictures.label_files import FORMATS, labelled_photos, write_label_file


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
    file = root.parent / "labels.any"
    file.write_text(text, encoding="utf-8")
    folder = labelled_photos(root, file)
    return {photo.name: photo.label for photo in folder.photos}, folder.unused


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_written_is_read_back(flat, form):
    root, labels = flat
    text = write_label_file(list(labels), list(labels.values()), sorted(set(labels.values())), form)
    assert read(root, text) == (labels, ())


def test_a_head_from_labels_is_the_head_from_folders(shades, flat, fit, tmp_path):
    root, labels = flat
    (tmp_path / "labels.csv").write_text("picture,label\n" + "".join(f"{n},{c}\n" for n, c in labels.items()))
    ours, theirs = fit(root, labels=tmp_path / "labels.csv").head, fit(shades).head
    assert ours.about.classes == theirs.about.classes
    assert (ours.head.coef_ == theirs.head.coef_).all()


def task(image, *annotations):
    def annotation(cancelled, *choices):
        result = {"from_name": "choice", "id": "CkRNBWbSiK", "to_name": "img", "type": "choices"}
        return {"id": 1, "was_cancelled": cancelled, "result": [result | {"value": {"choices": [*choices]}}]}

    given = [annotation(*one) for one in annotations]
    return {"id": 7, "data": {"image": image}, "annotations": given, "predictions": []}


def test_exports_of_label_studio(flat):
    """Uploads get a prefix, local files stand in the query; the last annotation counts that was not cancelled."""
    root, _ = flat
    tasks = [
        task("/data/upload/3/1a2b3c4d-red-0.png", (False, "red")),
        task("/data/local-files/?d=flat/d%C3%A9sert/blue-1.png", (False, "red"), (False, "blue"), (True, "red")),
        task("s3://bucket/flat/désert/green-2.png", (False, "green")),
        task("https://example.org/other.png", (False, "green")),
        task("/data/upload/3/1a2b3c4d-red-1.png"),
    ]
    labels, unused = read(root, json.dumps(tasks))
    assert labels == {"désert/red-0.png": "red", "désert/blue-1.png": "blue", "désert/green-2.png": "green"}
    assert "other.png" in unused[0]
    assert "9 pictures have no label" in unused[1]


def test_exports_of_fiftyone(flat):
    root, _ = flat
    stored = {"classes": ["red", "blue"], "labels": {"désert/red-0": 0, "désert/blue-1": 1, "désert/red-1": None}}
    labels, _ = read(root, json.dumps(stored))
    assert labels == {"désert/red-0.png": "red", "désert/blue-1.png": "blue"}
    labels, _ = read(root, json.dumps({"classes": None, "labels": {"désert/red-0": "x", "désert/blue-1": "y"}}))
    assert set(labels.values()) == {"x", "y"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,kind\na,b\n", "columns picture,label"),
        ("", "columns picture,label"),
        ("picture,label\n../../etc/passwd,x\nnowhere.png,y\n", "Not found there"),
        ("picture,label\ndésert/red-0.png,x\ndésert/red-0.png,y\n", "two labels"),
        ("[1, 2]", "task 1 is not"),
        (json.dumps([task("red-0.png", (False, "a", "b"))]), "has 2 labels"),
        ('{"classes": ["a"], "labels": {"x": 3}}', "has label 3"),
        ('{"a": 1}', "neither"),
        ("[", "not readable JSON"),
        ('picture,label\n"' + "x" * 200_000, "not a readable CSV file"),
    ],
)
def test_files_that_are_none_are_one_sentence(flat, text, words):
    with pytest.raises(InputError, match=words):
        read(flat[0], text)


def test_fiftyone_cannot_tell_suffixes_apart():
    with pytest.raises(InputError, match="named twice"):
        write_label_file(["a/0.png", "a/0.jpg"], ["x", "y"], ["x", "y"], "fiftyone")


def test_the_command_prints_what_fit_reads(kshot, shades, fit, tmp_path):
    head = fit(shades).head
    head.save(tmp_path / "head.safetensors")
    (tmp_path / "labels.csv").write_text(kshot("export", "head.safetensors", "--labels", "csv").stdout)
    assert fit(shades, labels=tmp_path / "labels.csv").head.about.shot_names == head.about.shot_names
    refused = kshot("export", "head.safetensors", "--labels", "coco")
    assert refused.returncode == 2
    assert "Known: csv, fiftyone, label-studio" in refused.stderr


def test_names_that_two_pictures_have_are_refused(shades, tmp_path):
    """a.jpg and a.png in one folder, and b.png beside them."""
    root = tmp_path / "twins"
    root.mkdir()
    for name, source in (("a.jpg", "red/0.png"), ("a.png", "blue/0.png"), ("b.png", "green/0.png")):
        shutil.copy(shades / source, root / name)
    text = '{"classes": ["red", "blue"], "labels": {%s}}'
    for labels, words in (
        ('"a": 0, "b": 1', r"labels a, which may be a\.jpg or a\.png"),
        ('"b": 0, "a.jpg": 1, "b": 1', "'b' is named twice"),
    ):
        with pytest.raises(InputError, match=words):
            read(root, text % labels)
    labels, _ = read(root, text % '"a.jpg": 0, "a.png": 1, "b": 1')
    assert labels == {"a.jpg": "red", "a.png": "blue", "b.png": "blue"}
