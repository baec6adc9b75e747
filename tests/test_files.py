"""Files are whole or absent, and belong to whom they belonged before."""

import os
import stat
from pathlib import Path

import pytest

from kshot.errors import KshotError
from kshot.files import TEMPORARY_PREFIX, remove_torn, safe_name, write_atomically, write_text


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, umask, mask, mode):
    umask(mask)
    write_text(tmp_path / "head", "one")
    assert stat.S_IMODE((tmp_path / "head").stat().st_mode) == mode


def test_a_file_that_only_its_owner_may_read_stays_so(tmp_path, umask):
    path = tmp_path / "head"
    write_text(path, "one")
    path.chmod(0o600)
    write_text(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "two"


def test_nobody_else_reads_it_while_it_is_written_either(tmp_path, umask):
    umask(0o022)
    path, seen = tmp_path / "head", []
    path.touch(0o600)
    write_atomically(path, lambda temporary: seen.append(stat.S_IMODE(temporary.stat().st_mode)))
    assert seen == [0o600]


def test_a_circle_of_links_is_replaced(tmp_path):
    link = tmp_path / "head"
    link.symlink_to(tmp_path / "head")
    write_text(link, "one")
    assert link.read_text() == "one"


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "elsewhere" / "head", tmp_path / "head"
    target.parent.mkdir()
    target.write_text("one")
    link.symlink_to(target)
    write_text(link, "two")
    assert link.is_symlink()
    assert target.read_text() == "two"


def test_a_file_is_on_the_disk_before_its_name_and_then_its_folder(tmp_path, monkeypatch):
    """So that a power cut leaves the old file or the new one."""
    happened = []
    sync, rename = os.fsync, Path.replace

    def note_sync(handle):
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        happened.append(
            "folder" if place == tmp_path else "file" if place.name.startswith(TEMPORARY_PREFIX) else str(place)
        )
        sync(handle)

    def note_rename(self, target):
        happened.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_rename)
    write_text(tmp_path / "head", "one")
    assert happened == ["file", "rename", "folder"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "head"
    write_text(path, "one")
    path.parent.chmod(0o755)

    def fail(temporary):
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    from kshot.files import write_atomically

    with pytest.raises(KshotError, match="disk is full"):
        write_atomically(path, fail)
    assert path.read_text() == "one"
    assert not [found for found in tmp_path.iterdir() if found.name.startswith(TEMPORARY_PREFIX)]


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "a\0b", ".hidden", "é", "a b", "C:", "C:\\a", "a\\b", "nul", "Con.x", "lpt1", "a."]
)
def test_names_that_could_leave_their_folder_never_reach_the_disk(name):
    with pytest.raises(KshotError, match="cannot be a file name"):
        safe_name("dataset", name)


def test_a_name_longer_than_file_systems_take_is_refused():
    with pytest.raises(KshotError, match="cannot be a file name"):
        safe_name("dataset", "a" * 300)


def test_what_a_killed_process_left_is_removed_after_a_day_and_nothing_else(tmp_path):
    for name in ("old", "new"):
        (tmp_path / f"{TEMPORARY_PREFIX}{name}").touch()
    (tmp_path / "kept").touch()
    for name in (f"{TEMPORARY_PREFIX}old", "kept"):
        os.utime(tmp_path / name, (0, 0))
    assert remove_torn(tmp_path) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{TEMPORARY_PREFIX}new", "kept"]
