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
# The paper's difference of CLAP and the oracle ratio in the same stratum; UCF101 is not among its ten sets.
SETS = {
    ("stanford-cars", "ViT-B-32"): "strata.cars.vitb32.surplus",
    ("fgvc-aircraft", "ViT-B-16"): "strata.aircraft.vitb16.surplus",
    ("caltech101", "ViT-B-16"): "strata.caltech101.vitb16.surplus",
    ("food101", "ViT-B-16"): "strata.food101.vitb16.surplus",
    ("dtd", "ViT-B-16"): "strata.dtd.vitb16.surplus",
    ("ucf101", "ViT-B-16"): None,
    ("imagenet", "ViT-B-32"): "strata.imagenet.vitb32.surplus",
    ("whu-rs19", "ViT-B-32"): None,
}
# The rows of the paper's per-dataset table (ViT-B/16, sixteen shots).
PUBLISHED = {
    "fgvc-aircraft": "aircraft",
    "caltech101": "caltech101",
    "stanford-cars": "cars",
    "dtd": "dtd",
    "food101": "food101",
    "imagenet": "imagenet",
}
BESIDE = {"zero_shot": "zero-shot", "ncm": "NCM", "loo_blend": "LOO", "oracle_lambda": "oracle ratio", "clap": "CLAP"}
BESIDE |= {"lpp": "LP++", "gda_alpha1": "GDA"}


def blocks() -> dict[str, str]:
    """The generated parts of the page by name."""
    found = load_records(RECORDS).where(tier="text")
    single = single_draws(RECORDS)
    made = {"findings": findings(one_encoder(found)), "sets": sets(found, single), "published": published(found)}
    return made | {name: found.table(name).markdown() for name in ("text_strength", "encoder_order")}


def one_encoder(found: Results) -> Results:
    """Every set through one encoder, so that a set with six of them does not count six times."""
    return found.where(backbone=("ViT-B-16", "ViT-B-32"))


def single_draws(folder: Path) -> set[tuple[str, int]]:
    """(dataset, shots) whose draws all have the same shots, or that have one draw only: all of a pool is taken.

    Two draws whose class means lie equally far from the text are the same shots in another order.
    """
    found: dict[tuple[str, int, str], list[float]] = {}
    columns = load_records(folder).panel.records.select(("dataset", "shots", "tier", "seed", "d2")).to_pydict()
    for (dataset, shots, tier, _), d2 in {key[:4]: key[4] for key in zip(*columns.values(), strict=True)}.items():
        if d2 is not None:
            found.setdefault((dataset, shots, tier), []).append(d2)
    return {key[:2] for key, d2 in found.items() if np.allclose(d2, d2[0], rtol=1e-5)}


def findings(found: Results) -> str:
    """Method minus oracle ratio in the paper and here, with intervals over datasets."""
    head = f"| minus the oracle ratio | cells | the paper, G = 10 | here, G = {sets_of(found)} |"
    rows = [head, "|---|---|---|---|"]
    for title, (method, wanted) in FINDINGS.items():
        for cells in ("all K", "K≥4"):
            part = found if cells == "all K" else found.where(shots=(4, 8, 16))
            here = part.paired(method, ORACLE, cells="all")
            paper = with_interval(*paper_numbers(wanted[cells])) if cells in wanted else "–"
            rows.append(f"| {title} | {cells} | {paper} | {with_interval(here.mean, here.low, here.high)} |")
    return "\n".join(rows)


def sets_of(found: Results) -> int:
    return len(found.panel.names("dataset"))


def sets(found: Results, single: set[tuple[str, int]]) -> str:
    """Set by set, with intervals over the five draws: they say nothing about other sets.

    A single draw has no interval, and neither has a mean over numbers of shots with one among them.
    """
    claims = _claims()
    head = [
        "set",
        "CLAP, all K: paper",
        "CLAP, all K",
        *(f"{m}, {k}" for m in ("CLAP", "LP++") for k in ("K=4", "most")),
    ]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    there = found.panel.names("dataset")
    for (dataset, backbone), claim in ((key, claim) for key, claim in SETS.items() if key[0] in there):
        own = found.where(dataset=dataset, backbone=backbone)
        largest = int(own.panel.shots.max())
        whole = np.mean([_draws(own.where(shots=int(k)), "clap").mean() for k in np.unique(own.panel.shots)])
        cells = ["–" if claim is None else f"{float(claims[claim]['value']):+.2f}", f"{whole:+.2f}"]
        for method in ("clap", "lpp"):
            for k in (4, largest):
                draws = _draws(own.where(shots=k), method)
                shown = f"{draws.mean():+.2f}" if (dataset, k) in single else _over_draws(draws)
                cells.append(shown if k == 4 else f"{shown} (K={k})")
        rows.append(f"| {dataset} | {' | '.join(cells)} |".replace("| -", "| −"))
    return "\n".join(rows)


def _draws(found: Results, method: str) -> np.ndarray:
    """Differences to the oracle ratio."""
    panel = found.panel
    return panel.column(method) - panel.column(ORACLE)


def _over_draws(draws: np.ndarray) -> str:
    half = t.ppf(0.975, len(draws) - 1) * draws.std(ddof=1) / np.sqrt(len(draws))
    return with_interval(draws.mean(), draws.mean() - half, draws.mean() + half)


def published(found: Results) -> str:
    """The paper's per-dataset table beside ours at the most shots that a set has, no verdict."""
    claims = _claims()
    rows = [f"| set | numbers | K | {' | '.join(BESIDE.values())} |", "|" + "---|" * (3 + len(BESIDE))]
    there = found.panel.names("dataset")
    for dataset, name in ((key, name) for key, name in PUBLISHED.items() if key in there):
        own = found.where(dataset=dataset).panel
        most = own.shots.max()
        theirs = [f"{float(claims[f'perdataset.k16.{name}.{method}']['value']):.1f}" for method in BESIDE]
        ours = [f"{own.column(method)[own.shots == most].mean():.1f}" for method in BESIDE]
        rows.append(f"| {dataset} | published | 16 | {' | '.join(theirs)} |")
        rows.append(f"| | ours | {most} | {' | '.join(ours)} |")
    return "\n".join(rows)


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
    clip, bundled = one_encoder(load_records(RECORDS).where(tier="text")), load_records(OPEN)
    series = ("the paper: 10 sets", f"real CLIP: {sets_of(clip)} sets", "bundled encoder: 7 sets")
    with styled():
        figure, axes = new_figure(6.4, 2.7)
        axis = axes[0]
        for row, (method, claims) in enumerate(FINDINGS.values()):
            cells = "K≥4" if "K≥4" in claims else "all K"
            found = [part.where(shots=(4, 8, 16)) if cells == "K≥4" else part for part in (clip, bundled)]
            here = [(e.mean, e.low, e.high) for e in (part.paired(method, ORACLE, cells="all") for part in found)]
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


def filled(page: str, made: dict[str, str]) -> str:
    """The page with its generated parts replaced."""
    for name, text in made.items():
        block = re.compile(rf"(<!-- {name}: .*?-->\n)(.*?)(<!-- end -->)", re.DOTALL)
        page = block.sub(lambda m, text=text: f"{m[1]}{text}\n{m[3]}", page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), blocks()), encoding="utf-8")
    draw_findings()
    draw_accuracy()
