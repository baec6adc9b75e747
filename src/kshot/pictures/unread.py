"""Pictures that nobody would expect to be missed: formats that are not read, and links that lead nowhere."""

from pathlib import Path

from kshot.encode.pictures import SUFFIXES, visible_files

# What phones, cameras and drawing programs write; a note or a system's own file among the pictures is no loss.
_UNREAD = "jxl jp2 svg pdf eps psd xcf tga ico exr raw dng cr2 cr3 nef nrw arw orf rw2 raf pef srw"
UNREAD = frozenset(f".{suffix}" for suffix in _UNREAD.split())
NOWHERE = "is a link to something that is not there."


def unread_files(root: Path) -> tuple[str, ...]:
    """Why each such file or link of the class folders is not used; what a system hides stays unmentioned."""
    folders = [folder for folder in sorted(root.iterdir()) if not folder.name.startswith(".")]
    lost = [f"{folder} {NOWHERE}" for folder in folders if _leads_nowhere(folder)]
    reasons = [_reason(path) for folder in folders if folder.is_dir() for path in sorted(visible_files(folder))]
    return (*lost, *(reason for reason in reasons if reason))


def _reason(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in SUFFIXES | UNREAD and _leads_nowhere(path):
        return f"{path} {NOWHERE}"
    if suffix in UNREAD and path.is_file():
        return f"{path}: {suffix[1:].upper()} is not read; convert it to JPEG or PNG."
    return ""


def _leads_nowhere(path: Path) -> bool:
    return path.is_symlink() and not path.exists()
