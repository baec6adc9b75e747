"""Records tables with known effects, in the schema that the runner writes."""

import json

import numpy as np
import pyarrow as pa

from kshot.bench.joined import joined_schema
from kshot.solvers.ratio_sweep import GRID

SEES = {
    "zero_shot": ["text"],
    "js_blend": ["support", "text"],
    "loo_blend": ["support", "text"],
    "clap": ["support", "text"],
    "lpp": ["support", "text"],
    "logistic_probe": ["support"],
    "oracle_lambda": ["support", "test", "text"],
}
TITLES = {
    "zero_shot": "Zero-shot",
    "js_blend": "James–Stein blend",
    "loo_blend": "LOO blend",
    "clap": "CLAP",
    "lpp": "LP++",
    "logistic_probe": "Logistic probe",
    "oracle_lambda": "Oracle ratio",
}
# Points above the oracle ratio; a dataset adds its own share, so that clusters differ.
EFFECT = {"zero_shot": -6, "js_blend": -8, "loo_blend": -0.8, "clap": 1.9, "lpp": 1.5, "logistic_probe": -3}
NEEDS_TWO = {"js_blend", "loo_blend"}
N_TEST = 400


def synthetic_rows(
    datasets=("alpha", "beta", "gamma", "delta"),
    backbones=("ViT-B-16", "RN50"),
    tiers=("dataset", "photo"),
    shots=(1, 2, 4, 16),
    seeds=(0, 1, 2),
    methods=tuple(SEES),
    text_free=(),
    seed=0,
    **extra,
):
    """One dict per record; a hit is drawn for every test picture so that accuracy, n_correct and hits agree."""
    rng = np.random.default_rng(seed)
    strength = dict(zip(datasets, rng.normal(0, 1, len(datasets)), strict=True))
    rows = []
    for dataset in datasets:
        for backbone in backbones:
            for tier in tiers:
                for k in shots:
                    for draw in seeds:
                        rows += _cell(rng, dataset, backbone, tier, k, draw, methods, strength[dataset], text_free)
    return [row | extra for row in rows]


def many_methods(count=38):
    """As many methods as kshot has, two datasets; those without a name of their own copy CLAP's effect."""
    extra = {f"extra_{number}": f"Extra {number}" for number in range(count - len(SEES))}
    rows = []
    for number, (key, title) in enumerate({**TITLES, **extra}.items()):
        source = key if key in SEES else "clap"
        part = synthetic_rows(("alpha", "beta"), ("ViT-B-16",), ("dataset",), (2, 4), (0, 1), (source,), seed=number)
        rows += [row | {"method": key, "title": title} for row in part]
    return rows


def _cell(rng, dataset, backbone, tier, k, draw, methods, strength, text_free):
    has_text = backbone not in text_free
    level = 0.5 + 0.05 * np.log2(k) + 0.05 * strength + (0.03 if tier == "dataset" else 0)
    facts = {
        "lambda_js": 0.9 + 0.005 * k + 0.01 * rng.uniform() if has_text and k > 1 else None,
        "d2": 1.2 - 0.02 * (tier == "dataset") + 0.01 * rng.normal() if has_text else None,
        "v": 0.6 / k if has_text and k > 1 else None,
        "share": 0.78 + 0.02 * rng.normal() if has_text else None,
    }
    oracle = float(GRID[int(np.clip(10 + 12 * np.log2(k) + 5 * rng.normal() + 5 * (tier == "photo"), 0, 100))])
    rows = []
    luck = rng.uniform(size=N_TEST)
    for method in methods:
        undefined = (method in NEEDS_TWO and k == 1) or (not has_text and "text" in SEES[method])
        gain = EFFECT.get(method, 0) * (1 + 0.3 * strength) / 100
        own_luck = np.where(rng.uniform(size=N_TEST) < 0.2, rng.uniform(size=N_TEST), luck)
        hits = own_luck < level + gain
        rows.append(
            {
                "study": "synthetic",
                "key": f"{dataset}/{backbone}/{tier}/{k}/{draw}/{method}",
                "dataset": dataset,
                "backbone": backbone,
                "tier": tier,
                "shots": k,
                "seed": draw,
                "profile": "balanced",
                "recipe": "{}",
                "protocol": "official",
                "method": method,
                "title": TITLES.get(method, method),
                "sees": SEES.get(method, ["support", "text"]),
                "status": "undefined" if undefined else "ok",
                "reason": "not at this K" if undefined else "",
                "accuracy": None if undefined else float(hits.mean()),
                "n_test": N_TEST,
                "n_correct": None if undefined else int(hits.sum()),
                "hits": b"" if undefined else np.packbits(hits).tobytes(),
                "n_classes": 10,
                "simulated": False,
                "dtype": "float32",
                "made_by": '{"kshot": "0.1.0"}',
                "features": "{}",
                "fit_seconds": 0.01 * (1 + k) * rng.uniform(0.5, 1),
                "score_seconds": 0.001,
                **_selected({} if undefined else _fitted(rng, method, oracle, facts)),
                **facts,
            }
        )
    return rows


def _fitted(rng, method, oracle, facts):
    curve = (0.7 - 0.4 * (GRID - oracle) ** 2).tolist()
    if method == "oracle_lambda":
        return {"lambda": (oracle, "test"), "accuracy": (curve, "test")}
    if method == "loo_blend":
        near = float(np.clip(round(oracle + 0.1 * rng.normal(), 2), 0, 1))
        return {"lambda": (near, "support"), "loo_accuracy": (curve, "support")}
    if method == "js_blend":
        mean = facts["lambda_js"]
        return {"lambda": ({"mean": mean, "min": mean - 0.1, "max": 1.0, "share_at_0": 0.0}, "support")}
    if method == "clap":
        penalties = {"mean": rng.uniform(), "min": 0.1, "max": 0.9}
        return {"seed": (0, "fixed"), "anchor_scale": (10.0, "fixed"), "penalties": (penalties, "support")}
    return {}


def _selected(fitted):
    return {
        "selected": json.dumps({name: value for name, (value, _) in fitted.items()}, sort_keys=True),
        "selected_from": json.dumps({name: origin for name, (_, origin) in fitted.items()}, sort_keys=True),
    }


def as_table(rows):
    return pa.Table.from_pylist(rows, schema=joined_schema())


def synthetic_table(**options):
    return as_table(synthetic_rows(**options))
