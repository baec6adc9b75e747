"""A simulated world at the paper's sizes, and runs in it.

A world has true accuracies per cell (the paper's tables, spread over cells) and noise of draws as the kept records of
real CLIP features show it: by method and shot count, shared by encoders and tiers, and by K and 2K since draws are
nested.
"""

from dataclasses import dataclass

import numpy as np

from kshot.paper.arms import MATRIX, Observations
from kshot.paper.claims import paper_claims, paper_rules
from kshot.stats.panel import COLUMNS, Panel, StudyPart
from kshot.types import CELL

PAPER = paper_rules().paper
DATASETS, BACKBONES, TIERS = PAPER["datasets"], PAPER["backbones"], PAPER["tiers"]
SHOTS, SEEDS = (1, 2, 4, 8, 16), 5
EVERY_TIER = (
    "zero_shot", "ncm", "js_blend", "centred_js_blend", "loo_blend", "loo_blend_kcorr", "oracle_lambda", "mse_oracle",
    "clap", "lpp",
)  # fmt: skip
METHODS = (*EVERY_TIER, "gda_alpha1", "gda_alpha_loo", "gda_alpha_val", "hoso", "tip_adapter_test")
NEED_TWO = ("js_blend", "centred_js_blend", "loo_blend", "loo_blend_kcorr", "hoso")
CLAIMS = [
    c
    for c in paper_claims()
    if c.arm not in ("coop", "precision", "textfree", "siglip2", "augmentation", "cost", "coverage")
]
PRINTED = {claim.id: claim.value for claim in CLAIMS}
# Standard deviations over draws by K, in points, as in docs/clip/records.
MEANS, CHOSEN = (1.8, 0.8, 0.85, 0.6, 0.4), (0.3, 0.8, 0.5, 0.4, 0.3)
BEST, PROBES = (0.25, 0.4, 0.4, 0.35, 0.25), (0.6, 0.8, 0.65, 0.5, 0.35)
SD: dict[str, tuple] = dict.fromkeys(("ncm", "js_blend", "centred_js_blend", "mse_oracle"), MEANS)
SD |= {"zero_shot": (0,) * 5, "loo_blend": CHOSEN, "loo_blend_kcorr": CHOSEN, "oracle_lambda": BEST}
SD |= {"tip_adapter_test": BEST, "clap": PROBES, "lpp": PROBES, "hoso": (0.4,) * 5}
SD |= {"gda_alpha1": (0, 0.9, 0.8, 0.3, 0.25), "gda_alpha_loo": (0, 1.7, 1.8, 0.4, 0.3)}
SD |= {"gda_alpha_val": (0, 0.8, 0.6, 0.3, 0.25)}
FAMILY = dict.fromkeys(("ncm", "js_blend", "centred_js_blend", "mse_oracle"), 0) | {"clap": 1, "lpp": 1, "hoso": 1}
FAMILY |= {"loo_blend": 2, "loo_blend_kcorr": 2, "oracle_lambda": 2, "tip_adapter_test": 2, "zero_shot": 2}
FAMILY |= dict.fromkeys(("gda_alpha1", "gda_alpha_loo", "gda_alpha_val"), 3)
NESTED, BY_DRAW, BY_FAMILY = 0.35, 0.4, 0.35
RATIOS = ("js_blend", "loo_blend", "loo_blend_kcorr", "oracle_lambda")
RATIO_SD = {"js_blend": 0.004, "loo_blend": 0.1, "loo_blend_kcorr": 0.1, "oracle_lambda": 0.07}
D, B, T, K, M = map(len, (DATASETS, BACKBONES, TIERS, SHOTS, METHODS))
SHAPE = (D, B, T, K, SEEDS, M)


def col(method):
    return METHODS.index(method)


@dataclass
class World:
    """True values by cell, and how noisy each dataset is."""

    accuracy: np.ndarray
    ratio: np.ndarray
    factor: np.ndarray
    n_test: np.ndarray
    geometry: np.ndarray


@dataclass
class Run:
    """Accuracies and ratios by (dataset, backbone, tier, shots, draw, method), and facts of the cells."""

    accuracy: np.ndarray
    ratio: np.ndarray
    d2: np.ndarray
    share: np.ndarray
    spread: np.ndarray


def world(seed):
    rng = np.random.default_rng([7, seed])
    zero = np.array([PRINTED.get(f"perdataset.k16.{d.lower()}.zero_shot", 68.0) for d in DATASETS])
    of_backbone = np.array(
        [PRINTED[f"perbackbone.{b}.zero_shot"] for b in ("rn50", "vitb32", "vitb16", "vitl14", "siglip")]
    )
    gain = np.array([[PRINTED.get(f"leaderboard.k{k}.{m}", 45.0) - 64.8 for m in METHODS] for k in SHOTS])
    base = zero[:, None, None] + (of_backbone - 64.5)[:, None] + np.array([-1.4, 0.0, 0.7, 0.9])
    scale = rng.uniform(0.5, 1.5, (D, 1, 1, 1, 1)) * rng.uniform(0.8, 1.2, (D, B, 1, 1, 1))
    own = rng.normal(0, 0.7, (D, B, T, 1, M)) + rng.normal(0, 0.3, (D, B, T, K, M))
    own[..., col("zero_shot")] = 0
    accuracy = np.clip(
        base[..., None, None] + rng.normal(0, 1.0, (D, B, T))[..., None, None] + scale * gain + own, 2, 99
    )
    ratio = np.full((D, B, T, K, M), np.nan)
    level = np.clip(
        0.06 + 0.12 * np.arange(K) + rng.normal(0, 0.1, (D, 1, 1, 1)) + np.array([0.03, 0, -0.015, 0.005])[:, None],
        0.02,
        0.95,
    )
    for method in RATIOS:
        ratio[..., col(method)] = 0.96 if method == "js_blend" else level
    n_test = np.array([PRINTED[f"datasets.{d.lower()}.n_test"] for d in DATASETS])
    return World(accuracy, ratio, np.exp(rng.normal(0, 0.4, D)), n_test, rng.uniform(0.2, 1, (D, B)))


def _nested(rng, *shape):
    """Standard normals whose axis 3 is K: neighbours share a part."""
    found = rng.normal(size=shape)
    for k in range(1, shape[3]):
        found[:, :, :, k] = NESTED * found[:, :, :, k - 1] + np.sqrt(1 - NESTED**2) * found[:, :, :, k]
    return found


def run(truth, seed):
    """One run: the world's cells with five draws of its own."""
    rng = np.random.default_rng([11, *np.atleast_1d(seed)])
    family = np.array([FAMILY[m] for m in METHODS])
    noise = np.sqrt(BY_DRAW) * _nested(rng, D, 1, 1, K, SEEDS, M)
    noise = noise + np.sqrt(BY_FAMILY) * _nested(rng, D, B, 1, K, SEEDS, 4)[..., family]
    noise = noise + np.sqrt(1 - BY_DRAW - BY_FAMILY) * rng.normal(size=SHAPE)
    noise[..., col("ncm")] = noise[:, :, :1, ..., col("ncm")]
    sd = np.array([SD[m] for m in METHODS]).T[:, None, :] * truth.factor[:, None, None, None, None, None]
    accuracy = truth.accuracy[:, :, :, :, None] + sd * noise
    accuracy[..., col("ncm")] = (truth.accuracy[:, :, :1, :, None] + sd * noise)[..., col("ncm")]
    luck = rng.normal(size=(D, B, T, K, SEEDS, len(RATIOS)))
    ratio = np.repeat(truth.ratio[:, :, :, :, None], SEEDS, axis=4)
    for number, method in enumerate(RATIOS):
        drawn = np.clip(ratio[..., col(method)] + RATIO_SD[method] * luck[..., number], 0, 1)
        ratio[..., col(method)] = drawn if method == "js_blend" else np.round(drawn, 2)
    d2 = 1.2 - np.array([0, 0.012, 0.0156, 0.0177])[:, None, None] + 0.003 * _nested(rng, D, B, 1, K, SEEDS)
    share = 0.78 + 0.02 * truth.geometry[..., None, None, None] + 0.0005 * _nested(rng, D, B, T, K, SEEDS)
    spread = np.exp(0.08 * rng.normal(size=(D, B, K)))
    return Run(accuracy, ratio, d2, share, spread)


def observed(truth, one):
    """The run as the comparison reads it."""
    index = np.indices(SHAPE[:5]).reshape(5, -1)
    keep = ~((index[0] == DATASETS.index("Flowers102")) & (index[3] > 2))
    # What was not run has no record.
    keep &= np.isfinite(one.accuracy[..., 0]).ravel()
    index = index[:, keep]
    accuracy = one.accuracy.copy()
    hits = truth.n_test[:, None, None, None, None, None] / 100
    accuracy = np.round(np.clip(accuracy, 0, 100) * hits) / hits
    accuracy[:, :, [t for t, name in enumerate(TIERS) if name != "dataset"], ..., len(EVERY_TIER) :] = np.nan
    ratio = one.ratio.copy()
    for method in NEED_TWO:
        accuracy[:, :, :, 0, :, col(method)] = ratio[:, :, :, 0, :, col(method)] = np.nan
    at = tuple(index)
    types = {"dataset": "U20", "backbone": "U20", "tier": "U20", "profile": "U10", "shots": int, "seed": int}
    cells = np.empty(index.shape[1], [(name, types.get(name, float)) for name in COLUMNS])
    for number, (axis, names) in enumerate(
        zip(CELL[:5], (DATASETS, BACKBONES, TIERS, SHOTS, range(SEEDS)), strict=True)
    ):
        cells[axis] = np.array(names)[index[number]]
    cells["profile"] = "balanced"
    cells["d2"] = np.broadcast_to(one.d2, SHAPE[:5])[at]
    cells["share"] = np.broadcast_to(one.share, SHAPE[:5])[at]
    cells["lambda_js"], cells["v"] = 0.96, 0.1
    cells["n_classes"] = np.array([PRINTED[f"datasets.{d.lower()}.classes"] for d in DATASETS])[index[0]]
    cells["n_test"] = truth.n_test[index[0]]
    rows = np.arange(index.shape[1] * M).reshape(-1, M)
    values, chosen = accuracy[at].ravel(), ratio[at].ravel()
    nothing = np.full(len(values) + 1, np.nan)
    measures = {"value": np.append(values, np.nan), "ratio": np.append(chosen, np.nan), "alpha": nothing}
    measures |= {"fit_seconds": nothing, "score_seconds": nothing}
    origin = StudyPart("paper", "0", ("0",), {}, "float32", True, "")
    panel = Panel(cells, rows, measures, METHODS, {}, frozenset(), frozenset(), None, origin)
    return {MATRIX: _with_probes(panel, truth, one)}


def _with_probes(panel, truth, one):
    """The geometry of every stratum, which no draw changes, and the spread of the ratio over draws."""
    keys = {axis: panel.cells[axis].tolist() for axis in CELL}
    rows, columns = [], {}
    for d, dataset in enumerate(DATASETS):
        for b, backbone in enumerate(BACKBONES):
            g = truth.geometry[d, b]
            rows.append(
                (
                    dataset,
                    backbone,
                    0,
                    {"headroom.headroom": 8 * g**2, "headroom.path/full": 1 - g / 2, "spread.d_eff": 20 + 25 * g},
                )
            )
            for k in (1, 4):
                if dataset != "Flowers102" or SHOTS[k] <= 4:
                    predicted = 0.05 * g / SHOTS[k]
                    spread = {
                        "spread.predicted SD": predicted,
                        "spread.measured SD": 1.1 * predicted * one.spread[d, b, k],
                    }
                    rows.append((dataset, backbone, SHOTS[k], spread))
    for dataset, backbone, shots, found in rows:
        for axis, value in zip(CELL, (dataset, backbone, "dataset", shots, -1, "balanced"), strict=True):
            keys[axis].append(value)
        for name, value in found.items():
            columns.setdefault(name, {})[len(keys["shots"]) - 1] = value
    probes = {}
    for name, found in columns.items():
        probes[name] = np.full(len(keys["shots"]), np.nan)
        probes[name][list(found)] = list(found.values())
    return Observations(panel, {axis: np.array(values) for axis, values in keys.items()}, probes)
