"""Faults that are planted in a simulated run: each changes it and says where it is.

`where` names axes as a cause does; several answers are right where two names are the same cells or the same mistake.
"""

import numpy as np

from benchmarks.verdict_world import BACKBONES, DATASETS, METHODS, RATIOS, SHAPE, SHOTS, TIERS, B, D, K, M, T, col

FEW = [i for i, name in enumerate(DATASETS) if name not in ("Flowers102", "ImageNet", "SUN397")]
WITH_SHOTS = [m for m in range(M) if METHODS[m] != "zero_shot"]
WITH_TEXT = [m for m in range(M) if METHODS[m] != "ncm"]


def clap_up(one, rng, truth):
    one.accuracy[..., col("clap")] += 0.3
    return {"method": "clap"}


def stratum_down(one, rng, truth):
    d, b = rng.integers(D), rng.integers(B)
    one.accuracy[d, b] -= 3
    return {"dataset": DATASETS[d], "backbone": BACKBONES[b]}


def encoder_down(one, rng, truth):
    b = rng.integers(B)
    one.accuracy[:, b] -= 1
    return {"backbone": BACKBONES[b]}


def seed_repeated(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:, :, :, :, 4] = values[:, :, :, :, 3]
    return {"seed": "draw 4"}


def shots_swapped(one, rng, truth):
    d = rng.choice([i for i, name in enumerate(DATASETS) if name != "Flowers102"])
    for values in (one.accuracy, one.ratio):
        values[d] = values[d][:, :, [0, 1, 2, 4, 3]]
    return {"dataset": DATASETS[d], "shots": "K = 8 and K = 16"}


def coarse_grid(one, rng, truth):
    for method in RATIOS[1:]:
        coarse = np.round(one.ratio[..., col(method)], 1)
        one.accuracy[..., col(method)] -= 40 * (coarse - one.ratio[..., col(method)]) ** 2
        one.ratio[..., col(method)] = coarse
    return {"method": "oracle_lambda, loo_blend, loo_blend_kcorr"}


def tiers_swapped(one, rng, truth):
    order = [TIERS.index(name) for name in ("ensemble", "dataset", "photo", "cupl")]
    for name in ("accuracy", "ratio", "share"):
        setattr(one, name, getattr(one, name)[:, :, order])
    return {"tier": "ensemble and photo"}


def loo_one_fold(one, rng, truth):
    for method in ("loo_blend", "loo_blend_kcorr", "gda_alpha_loo"):
        loss = np.array([0, 0.6, 0.3, 0.15, 0.1])[:, None] * rng.chisquare(1, SHAPE[:5])
        one.accuracy[..., col(method)] -= loss
    for method in ("loo_blend", "loo_blend_kcorr"):
        wider = one.ratio[..., col(method)] + 0.15 * rng.normal(size=SHAPE[:5])
        one.ratio[..., col(method)] = np.round(np.clip(wider, 0, 1), 2)
    return {"method": "the methods that choose by leave-one-out"}


def oracle_on_half(one, rng, truth):
    one.accuracy[..., col("oracle_lambda")] -= (5 / np.sqrt(truth.n_test))[:, None, None, None, None] * rng.chisquare(
        1, SHAPE[:5]
    )
    wider = one.ratio[..., col("oracle_lambda")] + 0.05 * rng.normal(size=SHAPE[:5])
    one.ratio[..., col("oracle_lambda")] = np.round(np.clip(wider, 0, 1), 2)
    return {"method": "oracle_lambda"}


def labels_wrong(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d] *= 0.9
    return {"dataset": DATASETS[d]}


def pool_labels_wrong(one, rng, truth):
    d = rng.integers(D)
    shots = [m for m in range(M) if METHODS[m] != "zero_shot"]
    one.accuracy[d][..., shots] -= np.array([2.5, 2, 1.5, 1.2, 1.0])[:, None, None]
    return {"dataset": DATASETS[d], "method": "the methods that use shots"}


def one_shot_clap(one, rng, truth):
    one.accuracy[:, :, :, 0, :, col("clap")] -= 1
    return {"shots": "K = 1", "method": "clap"}


def text_of_encoder(one, rng, truth):
    b, t = rng.integers(B), rng.integers(T)
    one.accuracy[:, b, t][..., [m for m in range(M) if METHODS[m] != "ncm"]] -= 2
    return {"backbone": BACKBONES[b], "tier": TIERS[t]}


def hoso_in_dataset(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d, ..., col("hoso")] += 2
    return {"dataset": DATASETS[d], "method": "hoso"}


def datasets_exchanged(one, rng, truth):
    order = list(range(D))
    a, b = sorted(rng.choice([i for i in order if DATASETS[i] != "Flowers102"], 2, replace=False))
    order[a], order[b] = b, a
    for name in ("accuracy", "ratio"):
        setattr(one, name, getattr(one, name)[order])
    return {"dataset": f"{DATASETS[a]} and {DATASETS[b]}"}


def draw_off(one, rng, truth):
    one.accuracy[:, :, :, :, 2, 1:] -= 1
    return {"seed": "draw 2"}


def methods_exchanged(one, rng, truth):
    a, b = col("clap"), col("lpp")
    one.accuracy[..., [a, b]] = one.accuracy[..., [b, a]]
    return {"method": "clap and lpp"}


def stale_cells(one, rng, truth):
    d, b, k = rng.integers(D), rng.integers(B), rng.integers(3)
    one.accuracy[d, b, :, k, :, 1:] -= 4
    return {"dataset": DATASETS[d], "backbone": BACKBONES[b], "shots": f"K = {SHOTS[k]}"}


LISTED = (
    clap_up, stratum_down, encoder_down, seed_repeated, shots_swapped, coarse_grid, tiers_swapped, loo_one_fold,
    oracle_on_half, labels_wrong,
)  # fmt: skip
OTHERS = (
    pool_labels_wrong, one_shot_clap, text_of_encoder, hoso_in_dataset, datasets_exchanged, draw_off, methods_exchanged,
    stale_cells,
)  # fmt: skip


def _weaker(one, chosen, loss):
    """Lower accuracies of the methods at these numbers by an array over (dataset, backbone, tier, shots, draw)."""
    one.accuracy[..., chosen] -= np.broadcast_to(loss, SHAPE[:5])[..., None]


def lpp_at_one_shot(one, rng, truth):
    one.accuracy[:, :, :, 0, :, col("lpp")] -= 0.5
    return {"method": "lpp", "shots": "K = 1"}


def prompts_not_normalised(one, rng, truth):
    t = rng.integers(T)
    one.accuracy[:, :, t][..., WITH_TEXT] -= rng.uniform(0.1, 1.2, (D, B, 1, 1, 1))
    return {"tier": TIERS[t]}


def other_preprocessing(one, rng, truth):
    one.accuracy[:, 4] -= rng.uniform(0.1, 3, (D, 1, 1, 1, 1))
    return {"backbone": BACKBONES[4]}


def other_activation(one, rng, truth):
    b = rng.integers(4)
    one.accuracy[:, b] -= rng.normal(1, 2, (D, 1, 1, 1, 1))
    return {"backbone": BACKBONES[b]}


def test_order_wrong(one, rng, truth):
    d, b = rng.choice(FEW), rng.integers(B)
    one.accuracy[d, b] = 2 + rng.normal(0, 0.5, one.accuracy[d, b].shape)
    return {"dataset": DATASETS[d], "backbone": BACKBONES[b]}


def encoders_exchanged(one, rng, truth):
    a, b = sorted(rng.choice(B, 2, replace=False))
    order = list(range(B))
    order[a], order[b] = b, a
    for name in ("accuracy", "ratio"):
        setattr(one, name, getattr(one, name)[:, order])
    return {"backbone": " and ".join(sorted((BACKBONES[a], BACKBONES[b])))}


def encoders_exchanged_in_dataset(one, rng, truth):
    d = rng.choice(FEW)
    for values in (one.accuracy, one.ratio):
        values[d] = values[d][[1, 0, 2, 3, 4]]
    return {"dataset": DATASETS[d], "backbone": "RN50 and ViT-B-32"}


def shots_exchanged_in_encoder(one, rng, truth):
    b = rng.integers(B)
    for values in (one.accuracy, one.ratio):
        values[:, b] = values[:, b][:, :, [0, 2, 1, 3, 4]]
    return {"backbone": BACKBONES[b], "shots": "K = 2 and K = 4"}


def tiers_exchanged_in_encoder(one, rng, truth):
    b = rng.integers(B)
    order = [TIERS.index(name) for name in ("ensemble", "dataset", "photo", "cupl")]
    for values in (one.accuracy, one.ratio):
        values[:, b] = values[:, b][:, order]
    return {"backbone": BACKBONES[b], "tier": "ensemble and photo"}


def shots_one_step_off(one, rng, truth):
    """K of each folder read as the next smaller K."""
    for values in (one.accuracy, one.ratio):
        values[:, :, :, 1:4] = values[:, :, :, 2:5].copy()
    return [{"shots": "every K"}, {"shots": "K = 8"}]


def alpha_not_chosen(one, rng, truth):
    one.accuracy[..., col("gda_alpha_loo")] = one.accuracy[..., col("gda_alpha1")]
    return {"method": "gda_alpha_loo"}


def method_replaced(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[..., col("lpp")] = values[..., col("clap")]
    return {"method": "lpp"}


def tier_replaced(one, rng, truth):
    t = TIERS.index("photo"), TIERS.index("dataset")
    for values in (one.accuracy, one.ratio):
        values[:, :, t[0]][..., : len(METHODS) - 5] = values[:, :, t[1]][..., : len(METHODS) - 5]
    return {"tier": "photo"}


def encoder_replaced_in_dataset(one, rng, truth):
    d = rng.choice(FEW)
    for values in (one.accuracy, one.ratio):
        values[d, 0] = values[d, 1]
    return {"dataset": DATASETS[d], "backbone": "RN50"}


def shots_replaced(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:, :, :, 4] = values[:, :, :, 3]
    return {"shots": "K = 16"}


def draws_all_the_same(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:] = values[:, :, :, :, :1]
    return {"seed": "draw 1"}


def seed_of_method_fixed(one, rng, truth):
    """CLAP fitted once and written for all draws."""
    one.accuracy[..., col("clap")] = one.accuracy[..., :1, col("clap")]
    return {"method": "clap"}


def best_draw_reported(one, rng, truth):
    one.accuracy[..., col("lpp")] = one.accuracy[..., col("lpp")].max(axis=4, keepdims=True)
    return {"method": "lpp"}


def as_share(one, rng, truth):
    one.accuracy /= 100
    return {"cells": "every cell"}


def everything_down(one, rng, truth):
    one.accuracy -= 1
    return {"cells": "every cell"}


def rounded_to_points(one, rng, truth):
    one.rounded = True
    return {"cells": "every cell"}


def oracle_too_good(one, rng, truth):
    one.accuracy[..., col("oracle_lambda")] += 0.6
    return {"method": "oracle_lambda"}


def test_pictures_in_pool(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d][..., WITH_SHOTS] += np.array([0.3, 0.6, 1.2, 2.4, 4.0])[:, None, None]
    return [{"dataset": DATASETS[d]}, {"dataset": DATASETS[d], "method": "the methods that use shots"}]


def noise_added(one, rng, truth):
    one.accuracy[..., col("clap")] += rng.normal(0, 2, SHAPE[:5])
    return {"method": "clap"}


def prompt_of_dataset_wrong(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d, ..., col("zero_shot")] -= 2
    return {"dataset": DATASETS[d], "method": "zero_shot"}


def two_classes_exchanged(one, rng, truth):
    d = DATASETS.index("DTD")
    one.accuracy[d] *= 1 - 2 / 47
    return {"dataset": "DTD"}


def logit_scale_wrong(one, rng, truth):
    b = rng.integers(B)
    one.accuracy[:, b, ..., col("clap")] -= 0.8
    return {"backbone": BACKBONES[b], "method": "clap"}


def cupl_of_dataset_wrong(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d, :, TIERS.index("cupl")][..., WITH_TEXT] -= 2
    return {"dataset": DATASETS[d], "tier": "cupl"}


def half_of_test_set(one, rng, truth):
    """Another half of the pictures for every encoder: up here, down there."""
    d = rng.choice(FEW)
    luck = rng.normal(0, 50 / np.sqrt(truth.n_test[d]), (B, 1, 1, 1, 1))
    one.accuracy[d] += luck + rng.normal(0, 0.1 * 50 / np.sqrt(truth.n_test[d]), (B, T, K, 1, M))
    return {"dataset": DATASETS[d]}


def accuracy_by_class(one, rng, truth):
    d = rng.choice(FEW)
    one.accuracy[d] += 0.8 + rng.normal(0, 0.4, M)
    return {"dataset": DATASETS[d]}


def fewer_shots_than_said(one, rng, truth):
    one.accuracy[:, :, :, 4][..., WITH_SHOTS] -= 0.3
    return {"shots": "K = 16"}


def ratio_of_the_other_end(one, rng, truth):
    at = (..., col("loo_blend"))
    one.ratio[at] = np.round(1 - one.ratio[at], 2)
    return {"method": "loo_blend's ratio"}


def ratio_cut(one, rng, truth):
    at = (..., col("oracle_lambda"))
    loss = 10 * np.maximum(one.ratio[at] - 0.5, 0) ** 2
    one.ratio[at] = np.minimum(one.ratio[at], 0.5)
    one.accuracy[at] -= loss
    return {"method": "oracle_lambda's ratio"}


def old_code_in_one_draw(one, rng, truth):
    one.accuracy[..., 1, col("clap")] -= 1.5
    return [{"seed": "draw 1", "method": "clap"}]


def draw_off_in_dataset(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d, :, :, :, 2][..., WITH_SHOTS] -= 4
    return [{"dataset": DATASETS[d], "seed": "draw 2"}]


def level_and_slope(one, rng, truth):
    _weaker(one, [col("lpp")], np.array([-0.4, -0.2, 0, 0.2, 0.4])[:, None])
    return [{"method": "lpp"}, {"shots": "K = 16", "method": "lpp"}, {"shots": "K = 1", "method": "lpp"}]


# What is no fault: nothing may be named.
def seeds_in_another_order(one, rng, truth):
    order = rng.permutation(5)
    for values in (one.accuracy, one.ratio):
        values[:] = values[:, :, :, :, order]
    return {}


def half_precision(one, rng, truth):
    one.accuracy = one.accuracy.astype(np.float16).astype(float)
    return {}


def two_draws_missing(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:, :, :, :, 3:] = np.nan
    return {}


def one_shot_missing(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:, :, :, 0] = np.nan
    return {}


def zero_shot_rounds(one, rng, truth):
    """A picture more or less by the precision of text features."""
    one.accuracy[..., col("zero_shot")] += rng.integers(-1, 2, (D, B, T, 1, 1)) * (
        100 / truth.n_test[:, None, None, None, None]
    )
    return {}


OTHERS += (
    lpp_at_one_shot, prompts_not_normalised, other_preprocessing, other_activation, test_order_wrong,
    encoders_exchanged, encoders_exchanged_in_dataset, shots_exchanged_in_encoder, tiers_exchanged_in_encoder,
    shots_one_step_off, alpha_not_chosen, method_replaced, tier_replaced, encoder_replaced_in_dataset, shots_replaced,
    draws_all_the_same, seed_of_method_fixed, best_draw_reported, as_share, everything_down, rounded_to_points,
    oracle_too_good, test_pictures_in_pool, noise_added, prompt_of_dataset_wrong, two_classes_exchanged,
    logit_scale_wrong, cupl_of_dataset_wrong, half_of_test_set, accuracy_by_class, fewer_shots_than_said,
    ratio_of_the_other_end, ratio_cut, old_code_in_one_draw, draw_off_in_dataset, level_and_slope,
)  # fmt: skip
HARMLESS = (seeds_in_another_order, half_precision, two_draws_missing, one_shot_missing, zero_shot_rounds)
