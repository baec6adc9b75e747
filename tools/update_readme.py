"""Put the findings of the kept records into the README: `make readme`."""

from pathlib import Path

from tools.update_clip import (
    FINDINGS,
    OPEN,
    ORACLE,
    RECORDS,
    filled,
    one_encoder,
    paper_numbers,
    sets_of,
    with_interval,
)

from kshot.results import load_records

ROOT = Path(__file__).resolve().parents[1]
NO_BREAK = "\u00a0"
WHY = {
    "James–Stein blend": "it uses almost only the pictures, which costs most where text is strong",
    "LOO blend": "it is chosen with K−1 shots, which costs more where text is weak; DTD widens the interval",
    "CLAP": "Caltech101 and Food101 leave little to gain",
    "LP++": "the same",
}


def blocks() -> dict[str, str]:
    """The generated parts of the README by name."""
    return {"findings": findings()}


def findings() -> str:
    """Each finding in the paper, on real CLIP and on the bundled encoder; from K = 4 where the paper has it."""
    clip, bundled = one_encoder(load_records(RECORDS).where(tier="text")), load_records(OPEN)
    columns = ["minus the oracle ratio", "the paper, 10 sets", f"real CLIP, {sets_of(clip)} sets", "bundled, 7 sets"]
    rows = [f"| {' | '.join([*columns, 'why they differ'])} |", "|---|---|---|---|---|"]
    for title, (method, claims) in FINDINGS.items():
        cells = "K≥4" if "K≥4" in claims else "all K"
        parts = [found.where(shots=(4, 8, 16)) if cells == "K≥4" else found for found in (clip, bundled)]
        here = (part.paired(method, ORACLE, cells="all") for part in parts)
        shown = [with_interval(*paper_numbers(claims[cells])), *(with_interval(e.mean, e.low, e.high) for e in here)]
        # A figure and its interval stay on one line of the rendered table.
        whole = " | ".join(shown).replace(" [", f"{NO_BREAK}[").replace(", ", f",{NO_BREAK}")
        rows.append(f"| {title}, {cells} | {whole} | {WHY[title]} |")
    return "\n".join(rows)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text(encoding="utf-8"), blocks()), encoding="utf-8")
