"""Put the table and the figure that `make bench` made into the README: `make readme`."""

import re
import shutil
from pathlib import Path

from kshot.results import load_records

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- leaderboard:.*?-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def rendered() -> str:
    from rich.console import Console

    console = Console(width=118, highlight=False)
    with console.capture() as capture:
        console.print(load_records(ROOT / "records" / "embedded").leaderboard())
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


if __name__ == "__main__":
    readme = ROOT / "README.md"
    text = rendered()
    shutil.copy(ROOT / "records/embedded/report/figures/bars.png", ROOT / "docs" / "embedded.png")
    readme.write_text(BLOCK.sub(lambda m: f"{m[1]}```text\n{text}\n```\n{m[3]}", readme.read_text()))
