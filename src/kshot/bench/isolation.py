"""A process that can neither write, nor reach the network, nor see other processes: bubblewrap isolates it."""

import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kshot.bench.cell import ONE_THREAD
from kshot.errors import KshotError

NAMESPACES = ("bwrap", "--unshare-all", "--die-with-parent")
DEVICES = ("--dev", "/dev", "--proc", "/proc")
WHOLE_DISK = ("--ro-bind", "/", "/")
# What an interpreter and its compiled libraries need; nothing of a user lies there.
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")
# The probabilities of 50,000 pictures and 1,000 classes take 200 million bytes.
LARGEST_REPLY = 2**28
NEEDS_BUBBLEWRAP = "this needs bubblewrap: install it (bwrap), and allow it to make user namespaces."
SCRATCH = str(2**26)
KSHOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Enclosure:
    """Limits for unreviewed code: it sees the system's programs, Python, kshot and its own folder `code`, and no
    environment variable; `seconds` and `memory` (in bytes) are its largest."""

    code: Path
    seconds: int = 600
    memory: int = 8 * 2**30


def run_isolated(
    program: str, content: bytes, hidden: Sequence[Path] = (), enclosure: Enclosure | None = None
) -> tuple[bytes, str]:
    """Run a Python program with `content` as its standard input: its output, and the last line of its errors. It
    cannot read the `hidden` folders, and without an enclosure everything else."""
    command = [sys.executable, "-P", "-c", program]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KSHOT_")}
    if enclosure:
        if not can_isolate():
            raise KshotError(NEEDS_BUBBLEWRAP)
        environment = {"PATH": os.defpath, "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONPATH": str(KSHOT.parent)}
        places = map(str, (*SYSTEM, *_readable(enclosure)))
        binds = [part for place in places for part in ("--ro-bind-try", place, place)]
        scratch = [part for place in ("/tmp", "/dev/shm") for part in ("--size", SCRATCH, "--tmpfs", place)]
        closed = ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--new-session")
        command = [*NAMESPACES, *DEVICES, *scratch, *binds, *_emptied(hidden), *closed, *command]
    elif can_isolate():
        environment["TMPDIR"] = "/dev/shm"
        command = [*NAMESPACES, *WHOLE_DISK, *DEVICES, *_emptied(hidden), *command]
    seconds = enclosure.seconds if enclosure else None
    # Files, not pipes: the size limit of files keeps the process from filling our memory.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            subprocess.run(
                command,
                input=content,
                stdout=out,
                stderr=errors,
                env=environment | ONE_THREAD,
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return b"", f"it took longer than {seconds} s"
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - 4096))
        said = errors.read().decode(errors="replace").strip().splitlines()
        out.seek(0)
        return out.read(LARGEST_REPLY), said[-1][:300] if said else "it gave no answer"


def _readable(enclosure: Enclosure) -> Iterator[Path]:
    """Python's own folders, kshot and the folder of the method."""
    named = (sys.prefix, sys.base_prefix, *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
    yield from dict.fromkeys(Path(place) for place in named)
    yield from (KSHOT.parent, enclosure.code)


def limit_this_process(seconds: int, memory: int) -> None:
    """Set limits that this process cannot lift again."""
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: LARGEST_REPLY,
        resource.RLIMIT_NPROC: 64,
        resource.RLIMIT_CORE: 0,
    }
    for which, most in limits.items():
        resource.setrlimit(which, (most, most))


@cache
def can_isolate() -> bool:
    """Whether bubblewrap is installed and may make namespaces here."""
    try:
        trial = [*NAMESPACES, *WHOLE_DISK, *DEVICES, "true"]
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _emptied(hidden: Sequence[Path]) -> list[str]:
    """Empty folders in their place, which nobody can fill."""
    places = [str(folder.resolve()) for folder in hidden if folder.is_dir()]
    return [part for place in places for part in ("--tmpfs", place, "--remount-ro", place)]
