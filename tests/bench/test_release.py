"""A release comes back byte by byte, or not at all."""

import io
import tarfile

import pytest
from kshot.bench.release import open_release, write_release

from kshot.errors import KshotError


@pytest.fixture
def folders(tmp_path):
    for name, content in {
        "features/a/b/pool.safetensors": b"\x00\x01" * 5000,
        "records/paper/study.json": b"{}",
        "records/paper/probes/x.parquet": b"probe",
        "features/.downloads/big": b"fetched again",
        "records/paper/.kshot-host-1-x": b"torn",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [tmp_path / "features", tmp_path / "records"]


def contents(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def rebuilt(archive, change):
    """The same archive after `change` has seen its list of (name, bytes, type)."""
    with tarfile.open(archive) as tar:
        members = [[m.name, tar.extractfile(m).read(), tarfile.REGTYPE] for m in tar]
    change(members)
    with tarfile.open(archive, "w") as tar:
        for name, content, kind in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = kind, len(content) if kind == tarfile.REGTYPE else 0
            entry.linkname = "/etc/passwd" if kind == tarfile.SYMTYPE else ""
            tar.addfile(entry, io.BytesIO(content))


def test_what_was_packed_comes_back_without_hidden_files(folders, tmp_path):
    assert write_release(folders, tmp_path / "r.tar") == 3
    assert open_release(tmp_path / "r.tar", tmp_path / "opened") == 3
    visible = {
        f"{folder.name}/{name}": content
        for folder in folders
        for name, content in contents(folder).items()
        if not any(part.startswith(".") for part in name.split("/"))
    }
    assert contents(tmp_path / "opened") == visible


def test_two_packings_are_the_same_bytes(folders, tmp_path):
    for name in ("one.tar", "two.tar"):
        write_release(folders, tmp_path / name)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def damage(members):
    members[1][1] = b"\xff" + members[1][1][1:]


def lose(members):
    del members[-1]


def add(members):
    members.append(["features/extra", b"x", tarfile.REGTYPE])


def link(members):
    members[1][2] = tarfile.SYMTYPE


def without_list(members):
    del members[0]


def escape(members):
    members.append(["../outside", b"x", tarfile.REGTYPE])


def from_the_root(members):
    members.append(["/tmp/outside", b"x", tarfile.REGTYPE])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (damage, "features/a/b/pool.safetensors in .* is damaged, missing, or not one"),
        (lose, "is damaged, missing, or not one"),
        (add, "features/extra in .* is damaged, missing, or not one"),
        (link, "is not a file below the release"),
        (without_list, "its checksums.json is missing, damaged or newer"),
        (escape, "is not a file below the release"),
        (from_the_root, "is not a file below the release"),
    ],
)
def test_anything_else_is_refused_and_leaves_nothing(folders, tmp_path, change, says):
    archive = tmp_path / "r.tar"
    write_release(folders, archive)
    rebuilt(archive, change)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(KshotError, match=says):
        open_release(archive, tmp_path / "opened")
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_no_archive_or_would_overwrite_is_refused(folders, tmp_path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(KshotError, match="cannot be opened as a release"):
        open_release(tmp_path / "text", tmp_path / "opened")
    write_release(folders, tmp_path / "r.tar")
    with pytest.raises(KshotError, match="exists already"):
        open_release(tmp_path / "r.tar", tmp_path / "records")
    with pytest.raises(KshotError, match="no folder"):
        write_release([tmp_path / "absent"], tmp_path / "s.tar")
