"""Commands of this checkout beside those of another, in turn: `python -m benchmarks.side_by_side OTHER [--whole]`.

OTHER is a folder with kshot's repository as it was at c7c55688 (`git archive c7c55688 | tar x -C OTHER`). Without
`--whole` the embedded study has one draw instead of five. Processor seconds of a command and all that it starts, and
seconds by the clock, of the faster of two calls.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
KSHOT = [sys.executable, "-m", "kshot"]
# What is measured: the words of this checkout, and of the other where they differ.
COMMANDS = {
    "embedded study": ([*KSHOT, "run", "embedded.toml"], None),
    "plan of the paper": ([*KSHOT, "run", "paper", "--plan"], [*KSHOT, "plan", "paper"]),
    "status": ([*KSHOT, "status", "embedded"], [*KSHOT, "status", "records/embedded"]),
    "report": ([*KSHOT, "report", "embedded"], [*KSHOT, "report", "records/embedded"]),
    "import kshot": ([sys.executable, "-c", "import kshot; kshot.CLAP"], None),
    "rehearsal, one dataset": ([sys.executable, "{}/tools/rehearse.py", "rehearsal", "Pets"], None),
}
# A second call would find its records there.
ONCE = ("embedded study", "rehearsal, one dataset")
SLOWER = 1.1


def seconds(command: list[str], checkout: Path, folder: Path) -> tuple[float, float]:
    """Processor seconds and seconds by the clock."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    before, start = sum(os.times()[2:4]), time.perf_counter()
    words = [word.format(checkout) for word in command]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    taken, clock = sum(os.times()[2:4]) - before, time.perf_counter() - start
    assert done.returncode == 0, done.stdout + done.stderr
    return taken, clock


def side_by_side(other: Path, whole: bool) -> int:
    """How many commands are slower by more than a tenth."""
    study, slower = (HERE / "src/kshot/bench/studies/embedded.toml").read_text(encoding="utf-8"), 0
    if not whole:
        study = study.replace("seeds = [0, 1, 2, 3, 4]", "seeds = [0]")
    with tempfile.TemporaryDirectory() as temporary:
        places = {checkout: Path(temporary, str(number)) for number, checkout in enumerate((HERE, other))}
        for place in places.values():
            place.mkdir()
            (place / "embedded.toml").write_text(study, encoding="utf-8")
        for name, (ours, theirs) in COMMANDS.items():
            taken = {checkout: [] for checkout in places}
            for _ in range(1 if name in ONCE else 2):
                for checkout, place in places.items():
                    words = theirs or ours if checkout is other else ours
                    taken[checkout].append(seconds(words, checkout, place))
            (now, clock), (then, clock_then) = (min(times) for times in taken.values())
            slower += now > SLOWER * then
            print(
                f"{name}: {now:.2f} processor seconds, then {then:.2f} (× {now / then:.2f}); "
                f"by the clock {clock:.1f} and {clock_then:.1f}",
                flush=True,
            )
    return slower


if __name__ == "__main__":
    raise SystemExit(side_by_side(Path(sys.argv[1]).resolve(), "--whole" in sys.argv[2:]))
