"""Put the tables of the kept real CLIP records beside the paper's numbers into docs/clip.md: `make clip`."""

import csv
import re
from pathlib import Path

import numpy as np
from scipy.stats import t

from kshot.report.context import Context
from kshot.report.figures.comparisons import accuracy_by_shots
from kshot.report.figures.style import COLOURS, MARKERS, new_figure, styled
from kshot.results import Results, load_records

ROOT = Path(__file__).resolve().parents[1]
PAGE, RECORDS = ROOT / "docs" / "clip.md", ROOT / "docs" / "clip" / "records"
OPEN, FIGURE = ROOT / "docs" / "open" / "records", ROOT / "docs" / "clip" / "findings.png"
ACCURACY = ROOT / "docs" / "clip" / "accuracy_by_shots.png"
CLAIMS = ROOT / "src" / "kshot" / "paper" / "claims.csv"
ORACLE = "oracle_lambda"
# Every set has these; the guard of by-K means would leave Food101 out at K = 16.
SHARED_SHOTS = (1, 2, 4, 8)
# A few heads of each kind, for the README and the figure.
SHOWN = (
    *("zero_shot", "ncm", "js_blend", "loo_blend", "gda_alpha_loo", "tip_adapter_f", "proker", "taskres"),
    *("clap", "lpp", "fold_gda", "gauss_probe", "oracle_lambda"),
)
FINDINGS = {
    "James–Stein blend": ("js_blend", {"all K": "js.vs_oracle.allk"}),
    "LOO blend": ("loo_blend", {"all K": "headline.loo_blend.allk", "K≥4": "headline.loo_blend.k4up"}),
    "CLAP": ("clap", {"all K": "headline.clap.allk", "K≥4": "headline.clap.k4up"}),
    "LP++": ("lpp", {"all K": "headline.lpp.allk", "K≥4": "headline.lpp.k4up"}),
}
SETS = {
    ("stanford-cars", "ViT-B-32"): "strata.cars.vitb32.surplus",
    ("fgvc-aircraft", "ViT-B-16"): "strata.aircraft.vitb16.surplus",
    ("caltech101", "ViT-B-16"): "strata.caltech101.vitb16.surplus",
    ("food101", "ViT-B-16"): "strata.food101.vitb16.surplus",
}


def blocks() -> dict[str, str]:
    """The generated parts of the page by name."""
    found = load_records(RECORDS).where(tier="text")
    return {"findings": findings(found), "sets": sets(found)}


def findings(found: Results) -> str:
    """Method minus oracle ratio in the paper and here, with intervals over datasets."""
    rows = ["| minus the oracle ratio | cells | the paper, G = 10 | here, G = 4 |", "|---|---|---|---|"]
    for title, (method, wanted) in FINDINGS.items():
        for cells in ("all K", "K≥4"):
            part = found if cells == "all K" else found.where(shots=(4, 8, 16))
            here = part.paired(method, ORACLE)
            paper = with_interval(*paper_numbers(wanted[cells])) if cells in wanted else "–"
            rows.append(f"| {title} | {cells} | {paper} | {with_interval(here.mean, here.low, here.high)} |")
    return "\n".join(rows)


def sets(found: Results) -> str:
    """Set by set, with intervals over the five draws: they say nothing about other sets."""
    claims = _claims()
    head = ["set", "CLAP, all K: paper", "CLAP, all K", *(f"{m}, K={k}" for m in ("CLAP", "LP++") for k in (4, 16))]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for (dataset, backbone), claim in SETS.items():
        own = found.where(dataset=dataset, backbone=backbone)
        cells = [f"{float(claims[claim]['value']):+.2f}", _over_draws(own, "clap")]
        present = set(own.panel.shots.tolist())
        cells += [
            _over_draws(own.where(shots=k), method) if k in present else "–"
            for method in ("clap", "lpp")
            for k in (4, 16)
        ]
        rows.append(f"| {dataset} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _over_draws(found: Results, method: str) -> str:
    panel = found.panel
    differences = panel.column(method) - panel.column(ORACLE)
    if set(panel.shots.tolist()) == {16}:
        return f"{differences.mean():+.2f}".replace("-", "−")
    draws = np.array([differences[panel.seed == seed].mean() for seed in np.unique(panel.seed)])
    half = t.ppf(0.975, len(draws) - 1) * draws.std(ddof=1) / np.sqrt(len(draws))
    return with_interval(draws.mean(), draws.mean() - half, draws.mean() + half)


def with_interval(mean: float, low: float | None, high: float | None) -> str:
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−")


def paper_numbers(claim: str) -> tuple[float, float, float]:
    """The paper's value and the ends of its interval."""
    row = _claims()[claim]
    return float(row["value"]), float(row["low"]), float(row["high"])


def _claims() -> dict[str, dict[str, str]]:
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def draw_accuracy() -> None:
    """Accuracy against shots of the heads that the README shows: of all 38 nobody could follow one."""
    shown = load_records(RECORDS).where(tier="text", method=SHOWN).panel
    with styled():
        figure = accuracy_by_shots(shown, Context())
        assert not isinstance(figure, str), figure
        figure.savefig(ACCURACY, format="png", metadata={"Software": None})


def draw_findings() -> None:
    """The findings at a glance, for the README: distance from the best ratio, in the paper, here and by `lite0`."""
    clip, bundled = load_records(RECORDS).where(tier="text"), load_records(OPEN)
    series = ("the paper: 10 sets", "real CLIP: 4 sets", "bundled encoder: 7 sets")
    with styled():
        figure, axes = new_figure(6.4, 2.7)
        axis = axes[0]
        for row, (method, claims) in enumerate(FINDINGS.values()):
            cells = "K≥4" if "K≥4" in claims else "all K"
            found = [part.where(shots=(4, 8, 16)) if cells == "K≥4" else part for part in (clip, bundled)]
            here = [(e.mean, e.low, e.high) for e in (part.paired(method, ORACLE) for part in found)]
            for place, (mean, low, high) in enumerate([paper_numbers(claims[cells]), *here]):
                y = -row - 0.24 * (place - 1)
                style = {"color": COLOURS[place], "label": series[place] if row == 0 else None}
                axis.plot([low, high], [y, y], color=COLOURS[place], linewidth=1.6)
                axis.plot([mean], [y], MARKERS[place], markersize=5, linestyle="none", **style)
        axis.axvline(0, color="black", linewidth=0.9)
        axis.annotate(
            "the best ratio, tuned on test labels", (0, 0.62), (-4, 0), textcoords="offset points", ha="right"
        )
        axis.set_ylim(-len(FINDINGS) + 0.4, 0.9)
        titles = [f"{title}, {'K≥4' if 'K≥4' in claims else 'all K'}" for title, (_, claims) in FINDINGS.items()]
        axis.set_yticks([-row for row in range(len(titles))], titles)
        axis.grid(visible=False, axis="y")
        axis.set_xlabel("points of accuracy against it, with 95 % intervals over datasets")
        axis.legend(loc="center left", bbox_to_anchor=(0, 0.3))
        figure.savefig(FIGURE, format="png", metadata={"Software": None})


def filled(page: str) -> str:
    for name, text in blocks().items():
        block = re.compile(rf"(<!-- {name}: .*?-->\n)(.*?)(<!-- end -->)", re.DOTALL)
        page = block.sub(lambda m, text=text: f"{m[1]}{text}\n{m[3]}", page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw_findings()
    draw_accuracy()
