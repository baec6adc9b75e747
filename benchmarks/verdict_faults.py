"""Faults that are planted in a simulated run: each changes it and says where it is.

The answer names axes as a cause does; several are right where two names are the same cells or the same mistake.
"""

import numpy as np

from benchmarks.verdict_world import (
    BACKBONES,
    DATASETS,
    METHODS,
    PRINTED,
    RATIOS,
    SEEDS,
    SHAPE,
    SHOTS,
    TIERS,
    B,
    D,
    K,
    M,
    T,
    col,
)

AXES = ("dataset", "backbone", "tier", "shots", "seed")
NAMES = (DATASETS, BACKBONES, TIERS, [f"K = {k}" for k in SHOTS], [f"draw {seed}" for seed in range(SEEDS)])
FEW = [i for i, name in enumerate(DATASETS) if name not in ("Flowers102", "ImageNet", "SUN397")]
WITH_SHOTS = [m for m in range(M) if METHODS[m] != "zero_shot"]
WITH_TEXT = [m for m in range(M) if METHODS[m] != "ncm"]
GDA = {"the GDA heads": [col("gda_alpha1"), col("gda_alpha_loo"), col("gda_alpha_val")]}


def lowered(points, *drawn, of: slice | list[int] = slice(None), method=None, **fixed):
    """A fault that lowers accuracies under a name drawn on each of these axes and under given names: those of one
    method, of some, or all."""

    def fault(one, rng, truth):
        at = {axis: rng.integers(SHAPE[AXES.index(axis)]) for axis in drawn}
        at |= {axis: NAMES[AXES.index(axis)].index(name) for axis, name in fixed.items()}
        values = one.accuracy[tuple(at.get(axis, slice(None)) for axis in AXES)]
        values[..., of if method is None else GDA.get(method) or col(method)] -= points
        where = {axis: NAMES[AXES.index(axis)][number] for axis, number in at.items()}
        return (where | ({} if method is None else {"method": method})) or {"cells": "every cell"}

    return fault


def by_name(*faults):
    return {fault.__name__: fault for fault in faults}


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


def datasets_exchanged(one, rng, truth):
    order = list(range(D))
    a, b = sorted(rng.choice([i for i in order if DATASETS[i] != "Flowers102"], 2, replace=False))
    order[a], order[b] = b, a
    for name in ("accuracy", "ratio"):
        setattr(one, name, getattr(one, name)[order])
    return {"dataset": f"{DATASETS[a]} and {DATASETS[b]}"}


def methods_exchanged(one, rng, truth):
    a, b = col("clap"), col("lpp")
    one.accuracy[..., [a, b]] = one.accuracy[..., [b, a]]
    return {"method": "clap and lpp"}


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
    return [{"seed": "draw 1"}, {"cells": "every cell"}]


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


def rounded_to_points(one, rng, truth):
    one.rounded = True
    return {"cells": "every cell"}


def test_pictures_in_pool(one, rng, truth):
    d = rng.integers(D)
    one.accuracy[d][..., WITH_SHOTS] += np.array([0.3, 0.6, 1.2, 2.4, 4.0])[:, None, None]
    return [{"dataset": DATASETS[d]}, {"dataset": DATASETS[d], "method": "the methods that use shots"}]


def noise_added(one, rng, truth):
    one.accuracy[..., col("clap")] += rng.normal(0, 2, SHAPE[:5])
    return {"method": "clap"}


def two_classes_exchanged(one, rng, truth):
    d = DATASETS.index("DTD")
    one.accuracy[d] *= 1 - 2 / 47
    return {"dataset": "DTD"}


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


def level_and_slope(one, rng, truth):
    one.accuracy[..., col("lpp")] -= np.array([-0.4, -0.2, 0, 0.2, 0.4])[:, None]
    return [{"method": "lpp"}, {"shots": "K = 16", "method": "lpp"}, {"shots": "K = 1", "method": "lpp"}]


# What a hostile reviewer would plant.
def class_order_of_a_tier(one, rng, truth):
    """One tier's text of one encoder in another order: zero-shot at chance, blends fall to the pictures alone."""
    b, t = rng.integers(B), rng.integers(T)
    values = one.accuracy[:, b, t]
    alone = values[..., [col("ncm")]]
    with_both = [m for m in WITH_TEXT if METHODS[m] != "zero_shot"]
    fallen = alone + rng.normal(0.5, 0.3, (*alone.shape[:-1], len(with_both)))
    values[..., with_both] = np.minimum(values[..., with_both], fallen)
    values[..., col("zero_shot")] = 1 + rng.uniform(0, 1, (D, 1, 1))
    for method in RATIOS[1:]:
        one.ratio[:, b, t, ..., col(method)] = 1.0
    return {"backbone": BACKBONES[b], "tier": TIERS[t]}


def text_of_another_tier(one, rng, truth):
    one.accuracy[:, :, TIERS.index("cupl"), ..., col("clap")] = one.accuracy[:, :, 0, ..., col("clap")]
    return {"tier": "cupl", "method": "clap"}


def one_text_for_all_tiers(one, rng, truth):
    one.accuracy[..., col("lpp")] = one.accuracy[:, :, 1:2, ..., col("lpp")]
    return {"method": "lpp"}


def two_classes_of_pets_exchanged(one, rng, truth):
    one.accuracy[DATASETS.index("Pets")] *= 1 - 2 / 37 + rng.normal(0, 0.003, (B, T, 1, 1, M))
    return {"dataset": "Pets"}


def stratum_scaled(one, rng, truth):
    d, b = rng.integers(D), rng.integers(B)
    one.accuracy[d, b] *= 0.97
    return {"dataset": DATASETS[d], "backbone": BACKBONES[b]}


def another_template_at_one_shot_count(one, rng, truth):
    k = rng.integers(K)
    one.accuracy[:, :, :, k, :, col("zero_shot")] += rng.normal(-0.5, 1, (D, B, T, 1))
    return {"shots": f"K = {SHOTS[k]}", "method": "zero_shot"}


def failures_as_zero(one, rng, truth):
    """Two of a hundred records of LP++ failed."""
    one.accuracy[..., col("lpp")] *= rng.random(SHAPE[:5]) > 0.02
    return {"method": "lpp"}


def six_records_as_zero(one, rng, truth):
    for _ in range(6):
        one.accuracy[(*rng.integers((D, B, T, 3, SEEDS)), col("clap"))] = 0
    return {"method": "clap"}


def a_shot_less(one, rng, truth):
    """LP++ is given K − 1 shots where there are two or more."""
    step = np.log2(np.array(SHOTS[1:]) / (np.array(SHOTS[1:]) - 1))
    gained = np.diff(truth.accuracy[..., col("lpp")], axis=3) * step
    one.accuracy[:, :, :, 1:, :, col("lpp")] -= gained[..., None]
    return [{"method": "lpp"}, {"shots": "K = 2", "method": "lpp"}]


def older_code_in_two_draws(one, rng, truth):
    one.accuracy[..., :2, :][..., WITH_SHOTS] -= 0.8
    return {"seed": "draw 0 and draw 1"}


def class_mean_of_a_method(one, rng, truth):
    """CLAP as the mean over classes: up in some datasets, down in others."""
    one.accuracy[..., col("clap")] += rng.normal(0, 1, (D, 1, 1, 1, 1)) + rng.normal(0, 0.2, (D, B, 1, 1, 1))
    return {"method": "clap"}


def support_in_test_set(one, rng, truth):
    """The shots are test pictures of every dataset, of which a method has four of five right that it had wrong."""
    classes = np.array([PRINTED[f"datasets.{name.lower()}.classes"] for name in DATASETS])
    share = np.minimum(np.array(SHOTS) * classes[:, None] / truth.n_test[:, None], 0.9)
    before = one.accuracy[..., WITH_SHOTS]
    one.accuracy[..., WITH_SHOTS] += 0.8 * share[:, None, None, :, None, None] * (100 - before)
    return [{"method": "the methods that use shots"}, {"shots": "K = 16"}]


def test_pictures_kept_by_a_method(one, rng, truth):
    b = rng.integers(B)
    one.accuracy[:, b, ..., col("oracle_lambda")] += np.array([0.2, 0.4, 0.8, 1.6, 3.2])[:, None]
    return {"backbone": BACKBONES[b], "method": "oracle_lambda"}


def draws_repeated_at_one_shot_count(one, rng, truth):
    for values in (one.accuracy, one.ratio):
        values[:, :, :, 4, 3:] = values[:, :, :, 4, :2]
    return {"shots": "K = 16", "seed": "draw 3"}


def draw_repeated_for_a_method(one, rng, truth):
    one.accuracy[..., 4, col("clap")] = one.accuracy[..., 3, col("clap")]
    return {"method": "clap", "seed": "draw 4"}


def seed_fixed_in_an_encoder(one, rng, truth):
    b = rng.integers(B)
    one.accuracy[:, b, ..., col("lpp")] = one.accuracy[:, b, ..., :1, col("lpp")]
    return {"backbone": BACKBONES[b], "method": "lpp"}


def another_half_of_the_test_set_for_each_draw(one, rng, truth):
    luck = rng.normal(size=(*SHAPE[:5], 1)) * 50 / np.sqrt(truth.n_test)[:, None, None, None, None, None]
    one.accuracy += luck
    return {"cells": "every cell"}


def dataset_rounded(one, rng, truth):
    d = rng.choice(FEW)
    one.rounded = np.arange(D).reshape(D, 1, 1, 1, 1, 1) == d
    return {"dataset": DATASETS[d]}


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


LISTED = {
    "clap_up": lowered(-0.3, method="clap"),
    "stratum_down": lowered(3, "dataset", "backbone"),
    "encoder_down": lowered(1, "backbone"),
    **by_name(seed_repeated, shots_swapped, coarse_grid, tiers_swapped, loo_one_fold, oracle_on_half, labels_wrong),
}
OTHERS = {
    "one_shot_clap": lowered(1, shots="K = 1", method="clap"),
    "text_of_encoder": lowered(2, "backbone", "tier", of=WITH_TEXT),
    "hoso_in_dataset": lowered(-2, "dataset", method="hoso"),
    "draw_off": lowered(1, seed="draw 2", of=WITH_SHOTS),
    "stale_cells": lowered(4, "dataset", "backbone", shots="K = 4", of=WITH_SHOTS),
    "lpp_at_one_shot": lowered(0.5, shots="K = 1", method="lpp"),
    "everything_down": lowered(1),
    "oracle_too_good": lowered(-0.6, method="oracle_lambda"),
    "prompt_of_dataset_wrong": lowered(2, "dataset", method="zero_shot"),
    "logit_scale_wrong": lowered(0.8, "backbone", method="clap"),
    "cupl_of_dataset_wrong": lowered(2, "dataset", tier="cupl", of=WITH_TEXT),
    "fewer_shots_than_said": lowered(0.3, shots="K = 16", of=WITH_SHOTS),
    "old_code_in_one_draw": lowered(1.5, seed="draw 1", method="clap"),
    "draw_off_in_dataset": lowered(4, "dataset", seed="draw 2", of=WITH_SHOTS),
    **by_name(
        *(pool_labels_wrong, datasets_exchanged, methods_exchanged, prompts_not_normalised, other_preprocessing),
        *(other_activation, test_order_wrong, encoders_exchanged, encoders_exchanged_in_dataset),
        *(shots_exchanged_in_encoder, tiers_exchanged_in_encoder, shots_one_step_off, alpha_not_chosen),
        *(method_replaced, tier_replaced, encoder_replaced_in_dataset, shots_replaced, draws_all_the_same),
        *(seed_of_method_fixed, best_draw_reported, as_share, rounded_to_points, test_pictures_in_pool, noise_added),
        *(two_classes_exchanged, half_of_test_set, accuracy_by_class, ratio_of_the_other_end, ratio_cut),
        *(level_and_slope,),
    ),
}
HOSTILE = {
    "gda_of_an_encoder": lowered(1.2, "backbone", method="the GDA heads"),
    "class_names_of_a_tier": lowered(3, "dataset", "tier", of=WITH_TEXT),
    **by_name(
        *(class_order_of_a_tier, text_of_another_tier, one_text_for_all_tiers, two_classes_of_pets_exchanged),
        *(stratum_scaled, another_template_at_one_shot_count, failures_as_zero, six_records_as_zero, a_shot_less),
        *(older_code_in_two_draws, class_mean_of_a_method, support_in_test_set, test_pictures_kept_by_a_method),
        *(draws_repeated_at_one_shot_count, draw_repeated_for_a_method, seed_fixed_in_an_encoder),
        *(another_half_of_the_test_set_for_each_draw, dataset_rounded),
    ),
}
HARMLESS = by_name(seeds_in_another_order, half_precision, two_draws_missing, one_shot_missing, zero_shot_rounds)
