"""The field's further heads against the output of their official code (small copies beside this file).

Copies hold the first 40 test rows; large cases are read from beside the repository where they are.
"""

import numpy as np
import pytest
from scipy.special import log_softmax

from kshot import APE, RLA, CrossModalLP, ProKeR, SSText, TaskRes, TipAdapterF, TransCLIP
from kshot.solvers.adapter import train_linear_adapter
from kshot.solvers.cache import class_similarity
from kshot.solvers.cross_modal import paired_batches, train_cross_modal, warm_cosine
from kshot.solvers.text_probe import penalties, pulled_prototypes, repelled
from kshot.solvers.training import cosine_rates, half_cosine
from kshot.solvers.transduction import transduce
from official import BOTH, COPIES, agree, inputs, stored, unit

SMALL = ["C10_K1_d64", "C10_K4_d64"]
LARGE = "C100_K16_d512"
# Largest difference in float32 relative to the largest entry, as measured for plain versions of the recipes.
FLOAT32 = {"taskres": 1e-6, "tipf": 8e-7, "sstext": 8e-7, "ape": 8e-7, "rla": 6e-6, "proker": 1e-5}
FLOAT32 |= {"transclip": 2e-5, "xmodal": 1e-5, "taskres unit base": 1e-5}


def close(found, expected, dtype, name):
    """The first rows of what was found against those that are kept."""
    agree(found[: len(expected)], expected, dtype, FLOAT32[name] * np.abs(expected).max())


def shots(data, **more):
    return {"X": data["X"], "y": data["y"], "text": data["T"], **more}


def views(data, count=20):
    return data["V20"].reshape(20, *data["X"].shape)[:count]


def cached(dtype, folder=COPIES):
    """The inputs that come with a validation split."""
    data = stored("gda_tip_c10_k4_d64", folder)

    def labelled(part):
        return unit(data[f"X_{part}"], dtype), data[f"y_{part}"].astype(int)

    X, y = labelled("train")
    given = {"X": X, "y": y, "text": unit(data["text"], dtype)}
    return given, labelled("val"), labelled("test")


def official_scale(head):
    """ProKeR's code gives cosines."""
    return 100.0 if isinstance(head, ProKeR) else 1.0


@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
class TestHeads:
    """Every head as a user calls it."""

    @pytest.mark.parametrize("case", [*SMALL, pytest.param(LARGE, marks=pytest.mark.ci)])
    @pytest.mark.parametrize(
        ("head", "name", "key"),
        [
            (SSText(), "sstext", "sstext_logits_test"),
            (SSText(plus=True), "sstext", "sstextplus_logits_test"),
            (ProKeR(), "proker", "logits_test"),
            (APE(), "ape", "logits_test"),
            (TipAdapterF(seed=1), "tipf", "logits_test"),
            (TaskRes(seed=1), "taskres", "logits_test"),
        ],
        ids=["ss_text", "ss_text_plus", "proker", "ape", "tip_adapter_f", "taskres"],
    )
    def test_logits(self, case, head, name, key, prefix, dtype, request):
        folder = request.getfixturevalue("official") if case == LARGE else COPIES
        data = inputs(case, dtype, folder)
        expected = stored(f"{name}_{'scale10_' if name == 'taskres' else ''}{case}", folder)
        found = head.fit(**shots(data)).decision_function(data["Xte"]) / official_scale(head)
        close(found, expected[f"{prefix}_{key}"], dtype, name)
        if name == "ape":
            assert np.array_equal(head.channels_, expected[f"{prefix}_channels"])

    @pytest.mark.parametrize("case", SMALL)
    def test_taskres_on_a_unit_base(self, case, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"taskres_scale1_{case}")
        head = TaskRes(seed=1, anchor_scale=1.0).fit(**shots(data))
        close(head.decision_function(data["Xte"]), expected[f"{prefix}_logits_test"], dtype, "taskres unit base")

    @pytest.mark.parametrize("case", SMALL)
    @pytest.mark.parametrize(
        ("params", "key"),
        [
            ({}, "lr0.001_1overK"),
            ({"lr": 1e-2}, "lr0.01_1overK"),
            ({"lr": 1e-4}, "lr0.0001_1overK"),
            ({"lr": 1e-5}, "lr1e-05_1overK"),
            ({"penalty": "1/K2"}, "lr0.001_1overK2"),
        ],
    )
    def test_rla(self, case, params, key, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"rla_{case}")
        name = f"{prefix}_{key}_logits_test"
        if name not in expected:
            pytest.skip("the copy keeps one float32 run")
        close(RLA(**params).fit(**shots(data)).decision_function(data["Xte"]), expected[name], dtype, "rla")

    @pytest.mark.parametrize("case", SMALL)
    def test_cross_modal_and_its_half_of_the_text(self, case, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"xmodal_{case}")
        head = CrossModalLP(seed=1).fit(**shots(data))
        close(head.decision_function(data["Xte"]), expected[f"{prefix}_logits_test"], dtype, "xmodal")
        scale = dtype(np.exp(np.float64(dtype(4.60517))))
        halved = data["Xte"] @ (head.coef_ / 2 + scale / 2 * data["T"]).T
        close(halved, expected[f"{prefix}_wiseft_logits_test"], dtype, "xmodal")

    @pytest.mark.parametrize("case", SMALL)
    @pytest.mark.parametrize("gamma", ["0.002", "0.02", "0.2"])
    @pytest.mark.parametrize("aligned", [False, True])
    def test_transclip(self, case, gamma, aligned, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"transclip_{case}")
        name = f"{prefix}_{'aligned_' if aligned else ''}z_gamma{gamma}"
        if name not in expected:
            pytest.skip("the copies keep some of the runs")
        head = TransCLIP(aligned=aligned, gamma=float(gamma)).fit(**shots(data), queries=data["Xte"])
        close(head.predict_proba(data["Xte"]), expected[name], dtype, "transclip")

    @pytest.mark.parametrize(
        ("head", "reference", "key", "count"),
        [
            (TaskRes(seed=1), "taskres_scale10_views20_C10_K4_d64", "logits_test", 20),
            (TipAdapterF(seed=1), "tipf_views20_C10_K4_d64", "logits_test", 20),
            (RLA(), "rla_C10_K4_d64", "views20_lr0.001_1overK_logits_test", 20),
            (ProKeR(), "proker_C10_K4_d64", "logits_test_views3", 3),
        ],
        ids=["taskres", "tip_adapter_f", "rla", "proker"],
    )
    def test_views(self, head, reference, key, count, prefix, dtype):
        data = inputs("C10_K4_d64", dtype)
        found = head.fit(**shots(data, views=views(data, count))).decision_function(data["Xte"]) / official_scale(head)
        close(found, stored(reference)[f"{prefix}_{key}"], dtype, reference.split("_")[0])

    @pytest.mark.parametrize("plus", [False, True])
    def test_ss_text_with_uneven_shots_and_a_class_without(self, plus, prefix, dtype):
        data, expected = inputs("C10_K4_d64", dtype), stored("sstext_C10_K4_d64")
        rows = expected["unbalanced_rows"]
        head = SSText(plus=plus).fit(data["X"][rows], data["y"][rows], text=data["T"])
        key = f"{prefix}_sstext{'plus' if plus else ''}_unbalanced_logits_test"
        close(head.decision_function(data["Xte"]), expected[key], dtype, "sstext")

    @pytest.mark.ci
    @pytest.mark.parametrize(("scale", "turned_over"), [(100, 0), (30, 100)])
    def test_ss_text_says_when_the_repulsion_turns_it_over(self, scale, turned_over, prefix, dtype, official):
        data, expected = inputs(LARGE, dtype, official), stored(f"sstext_oneshot_{LARGE}", official)
        rows = expected["rows"]
        head = SSText(plus=True, logit_scale=float(scale)).fit(data["X"][rows], data["y"][rows], text=data["T"])
        key = f"{prefix}_tau{scale}_sstextplus"
        close(head.decision_function(data["Xte"]), expected[f"{key}_logits_test"], dtype, "sstext")
        assert head.selected_["turned_over"].value == turned_over
        lengths = expected[f"{prefix}_tau{scale}_norm_2p_minus_mean"]
        assert head.selected_["smallest_length"].value == pytest.approx(lengths.min(), rel=1e-5)
        assert 100 * head.score(data["Xte"], data["yte"]) == pytest.approx(float(expected[f"{key}_acc"]))


CALTECH = {}
IMAGENET = {"beta_low": 1.5, "beta_points": 10, "ridge_low": 0.05, "ridge_high": 0.25}
EUROSAT = {"ridge_points": 100}


@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
class TestSearches:
    """What the official codes choose with labels that a validation-free head never sees."""

    @pytest.mark.parametrize(("name", "grid"), [("caltech101", CALTECH), ("imagenet", IMAGENET), ("eurosat", EUROSAT)])
    def test_proker(self, name, grid, prefix, dtype):
        given, validation, test = cached(dtype)
        expected = stored("proker_gda_tip_c10_k4_d64")
        head = ProKeR(tune="val", **grid).fit(**given, validation=validation)
        key = f"{prefix}_searched_{name}"
        assert head.selected_["beta"].value == pytest.approx(expected[f"{key}_beta"])
        assert head.selected_["ridge"].value == pytest.approx(expected[f"{key}_lambda"])
        found = head.decision_function(test[0]) / official_scale(head)
        close(found, expected[f"{key}_logits_test"], dtype, "proker")

    def test_ape(self, prefix, dtype):
        given, validation, test = cached(dtype)
        expected = stored("ape_gda_tip_c10_k4_d64")
        head = APE(tune="val").fit(**given, validation=validation)
        chosen = [head.selected_[name].value for name in ("beta", "alpha", "gamma")]
        assert chosen == pytest.approx(expected[f"{prefix}_searched_beta_alpha_gamma"].tolist())
        assert 100 * head.selected_["accuracy"].value == pytest.approx(expected[f"{prefix}_searched_val_acc"])
        close(head.decision_function(test[0]), expected[f"{prefix}_searched_logits_test"], dtype, "ape")

    def test_tip_adapter_f(self, prefix, dtype):
        given, validation, test = cached(dtype)
        expected = stored("tipf_gda_tip_c10_k4_d64")
        head = TipAdapterF(tune="test", seed=1, beta_scale=7.0, alpha_scale=3.0)
        head.fit(**given, validation=validation, test=test)
        assert head.selected_["beta"].value == pytest.approx(expected[f"{prefix}_official_best_beta"])
        assert head.selected_["alpha"].value == pytest.approx(expected[f"{prefix}_official_best_alpha"])
        assert head.selected_["epoch"].value == int(expected[f"{prefix}_best_epoch_on_test"])
        accuracies = np.array(head.selected_["accuracy_per_epoch"].value)
        assert np.allclose(100 * accuracies, expected[f"{prefix}_test_acc_per_epoch"])
        if dtype == np.float64:
            agree(head.keys_.swapaxes(0, 1).reshape(40, 64), expected["f64_official_keys"], dtype, 0)
        assert 100 * head.score(*test) == pytest.approx(expected[f"{prefix}_official_reported_acc"])
        searched = head._scores_at(test[0], head.keys_, head.selected_["beta"].value, head.selected_["alpha"].value)
        close(searched, expected[f"{prefix}_official_logits_test"], dtype, "tipf")

    @pytest.mark.ci
    def test_transclip_carries_its_state_from_one_gamma_to_the_next(self, prefix, dtype, official):
        given, validation, test = cached(dtype)
        expected = stored("transclip_gda_tip_c10_k4_d64", official)
        nearest = (validation[0] @ test[0].T).argmax(axis=1)
        state, accuracies = None, []
        log_text = log_softmax(100.0 * test[0] @ given["text"].T, axis=1)
        gammas = ("0.002", "0.01", "0.02", "0.2")
        for gamma in gammas:
            settings = {"gamma": float(gamma), "prior_weight": 0.5, "aligned": False, "start": state}
            state = transduce(test[0], given["X"], given["y"], log_text, **settings)
            close(state.z, expected[f"{prefix}_sequence_z_gamma{gamma}"], dtype, "transclip")
            accuracies.append(np.mean(state.z[nearest].argmax(axis=1) == validation[1]))
        assert np.allclose(100 * np.array(accuracies), expected[f"{prefix}_sequence_val_acc"])
        assert float(gammas[np.argmax(accuracies)]) == pytest.approx(expected[f"{prefix}_selected_gamma"])


class TestOnTheWay:
    """States of the trajectories, in float64: Adam divides by tiny gradients, which float32 rounds away."""

    def test_taskres_rates(self):
        for case, epochs in (("C10_K4_d64", 100), ("C10_K1_d64", 100)):
            expected = stored(f"taskres_scale10_{case}")["lr_per_epoch"]
            assert np.allclose(cosine_rates(epochs, 2e-3, 1e-5), expected, rtol=1e-12)

    @pytest.mark.parametrize("epoch", [1, 2, 10])
    @pytest.mark.parametrize("scale", [1, 10])
    @pytest.mark.parametrize("case", SMALL)
    def test_taskres(self, case, scale, epoch):
        from kshot.solvers.text_probe import train_residual

        data, expected = inputs(case, np.float64), stored(f"taskres_scale{scale}_{case}")
        states = train_residual(
            [data["X"]],
            data["y"],
            scale * data["T"],
            iter([None] * epoch),
            cosine_rates(100, 2e-3, 1e-5)[:epoch],
            steps_per_epoch=1,
            alpha=0.5,
            scale=100.0,
            weight_decay=5e-4,
        )
        agree(list(states)[-1], expected[f"f64_residual_after_epoch{epoch}"], np.float64, 0)

    def test_tip_adapter_f_rates(self):
        expected = stored("tipf_C10_K4_d64")["lr_per_step"]
        assert np.allclose(half_cosine(np.arange(20), 20, 1e-3), expected, rtol=1e-12)

    @pytest.mark.parametrize("epochs", [1, 2, 10])
    def test_tip_adapter_f(self, epochs):
        data, expected = inputs("C10_K4_d64", np.float64), stored("tipf_C10_K4_d64")
        head, task = TipAdapterF(seed=1), _task(data)
        head._lay_out(task, beta=1.0, alpha=1.17)
        states = head._epochs(task, head.keys_, 20)
        for _ in range(epochs):
            keys = next(states)
        rows = keys.swapaxes(0, 1).reshape(40, 64)
        agree(rows, expected[f"f64_keys_after_step{epochs}"], np.float64, 0)

    @pytest.mark.parametrize("epoch", [2, 10])
    @pytest.mark.parametrize("case", SMALL)
    def test_rla(self, case, epoch):
        data, expected = inputs(case, np.float64), stored(f"rla_{case}")
        rates = half_cosine(np.arange(300), 300, 1e-3)[:epoch]
        penalty = 10 / len(data["y"])
        given = [data["X"]], data["y"], data["T"], rates
        states = train_linear_adapter(*given, penalty=penalty, scale=100.0, eps=1e-4)
        agree(list(states)[-1], expected[f"f64_lr0.001_1overK_W_after_epoch{epoch}"], np.float64, 0)

    def test_cross_modal_rates(self):
        expected, rates = stored("xmodal_C10_K4_d64"), warm_cosine(12_800, 1e-4)
        assert np.allclose(rates[:200], expected["lr_first200"], rtol=1e-12)
        assert rates[-1] == pytest.approx(float(expected["lr_last"]))

    @pytest.mark.parametrize("case", SMALL)
    def test_cross_modal(self, case):
        data, expected = inputs(case, np.float64), stored(f"xmodal_{case}")
        steps = paired_batches(1, len(data["y"]), 10, (4, 4))
        rates = warm_cosine(12_800, 1e-4)[:1000]
        scale = np.exp(4.60517)
        states = train_cross_modal(data["X"], data["y"], data["T"], steps, rates, scale=scale, weight_decay=0.01)
        for iteration, W in enumerate(states, 1):
            if iteration in (1, 2, 10, 100, 1000):
                agree(W, expected[f"f64_W_after_iter{iteration}"], np.float64, 0)

    @pytest.mark.parametrize("aligned", [False, True])
    def test_transclip(self, aligned):
        data, expected = inputs("C10_K4_d64", np.float64), stored("transclip_C10_K4_d64")
        key = "f64_aligned_" if aligned else "f64_"

        def after(rounds):
            log_text = log_softmax(100.0 * data["Xte"] @ data["T"].T, axis=1)
            settings = {"gamma": 0.02, "prior_weight": 0.5, "aligned": aligned}
            return transduce(data["Xte"], data["X"], data["y"], log_text, **settings, rounds=rounds)

        close(after(1).z, expected[f"{key}z_after_update1"], np.float64, "transclip")
        agree(after(2).means, expected[f"{key}mu_after_iter1"], np.float64, 0)
        agree(after(2).variances, expected[f"{key}std_after_iter1"], np.float64, 0)
        agree(after(11).means, expected[f"{key}mu_final"], np.float64, 0)
        agree(after(11).variances, expected[f"{key}std_final"], np.float64, 0)

    @pytest.mark.parametrize("case", SMALL)
    def test_ape_similarity(self, case):
        data, expected = inputs(case, np.float64), stored(f"ape_{case}")
        agree(class_similarity(data["X"], data["y"], data["T"]), expected["f64_sim"], np.float64, 0)

    @pytest.mark.parametrize("case", SMALL)
    def test_ss_text_prototypes(self, case):
        data, expected = inputs(case, np.float64), stored(f"sstext_{case}")
        for name, plus in (("sstext", False), ("sstextplus", True)):
            found = pulled_prototypes(data["X"], data["y"], data["T"], penalties(data["y"], 10, own_count=plus), 100.0)
            found = repelled(found)[0] if plus else found
            agree(found, expected[f"f64_{name}_W"], np.float64, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
class TestLargeAndSlow:
    @pytest.mark.ci
    def test_cross_modal(self, official, prefix, dtype):
        data, expected = inputs(LARGE, dtype, official), stored(f"xmodal_{LARGE}", official)
        head = CrossModalLP(seed=1).fit(**shots(data))
        close(head.decision_function(data["Xte"]), expected[f"{prefix}_logits_test"], dtype, "xmodal")

    @pytest.mark.ci
    def test_rla(self, official, prefix, dtype):
        data, expected = inputs(LARGE, dtype, official), stored(f"rla_{LARGE}", official)
        found = RLA().fit(**shots(data)).decision_function(data["Xte"])
        close(found, expected[f"{prefix}_lr0.001_1overK_logits_test"], dtype, "rla")

    @pytest.mark.ci
    @pytest.mark.parametrize("aligned", [False, True])
    def test_transclip(self, aligned, official, prefix, dtype):
        data, expected = inputs(LARGE, dtype, official), stored(f"transclip_{LARGE}", official)
        head = TransCLIP(aligned=aligned).fit(**shots(data), queries=data["Xte"])
        key = f"{prefix}_{'aligned_' if aligned else ''}z_gamma0.02"
        close(head.predict_proba(data["Xte"]), expected[key], dtype, "transclip")


def _task(data):
    from kshot.methods.evidence import prepare

    return prepare(TipAdapterF().info, 1, data["X"], data["y"], text=data["T"])
