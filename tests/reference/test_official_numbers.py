"""Every published head against the output of its official code (small copies beside this file)."""

import json

import numpy as np
import pytest

from kshot import CLAP, GDA, LPP, TipAdapter
from kshot.solvers.adapter import Adapter, adapt, blended_feature, train_adapter
from kshot.solvers.cache import cache_scores, lay_out, search_grid, search_hits
from kshot.solvers.cosine_probe import anchor_confidence, train_cosine_probe
from kshot.solvers.gaussian import alpha_hits, fit_gaussian
from kshot.solvers.rows import class_means, class_sums
from kshot.solvers.text_probe import step_sizes, train_text_probe
from kshot.solvers.training import batches, cosine_rates, momentum_sgd
from official import BOTH, agree, inputs, stored, unit

# Largest absolute difference of float32 logits that rounding explains.
FLOAT32_LOGITS = {"clap": 1e-4, "lpp": 2e-4, "gda": 8e-4, "tip": 4e-5, "adapter": 1e-3}


def clap_weights(data, seed, scale, epochs, penalties, views=None):
    X, y = data["X"], data["y"]
    rows = X if views is None else views
    labels = y if views is None else np.tile(y, len(views) // len(y))
    return train_cosine_probe(
        rows,
        labels,
        scale * data["T"],
        penalties,
        batches(seed, len(rows), len(X), 256),
        cosine_rates(300, 0.1, 1e-5)[:epochs],
        scale=100.0,
        momentum=0.9,
    )


@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
class TestCLAP:
    @pytest.mark.parametrize("case", ["C10_K1_d64", "C10_K4_d64"])
    def test_head(self, case, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"clap_{case}_scale10")
        head = CLAP(seed=1).fit(data["X"], data["y"], text=data["T"])
        found = head.decision_function(data["Xte"])
        agree(found, expected[f"{prefix}_logits_test"], dtype, FLOAT32_LOGITS["clap"])
        penalties = head.selected_["penalties"].value
        assert penalties["mean"] == pytest.approx(expected[f"{prefix}_penalty"].mean(), rel=1e-5)

    @pytest.mark.parametrize("case", ["C10_K1_d64", "C10_K4_d64"])
    def test_weights(self, case, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"clap_{case}_scale10")
        penalties = anchor_confidence(data["X"], data["y"], data["T"], 100.0)
        agree(penalties, expected[f"{prefix}_penalty"], dtype, 1e-5)
        agree(clap_weights(data, 1, 10.0, 300, penalties), expected[f"{prefix}_W"], dtype, 4e-5)

    def test_twenty_views(self, prefix, dtype):
        data, expected = inputs("C10_K1_d64", dtype), stored("clap_C10_K1_d64_scale10_views20")
        head = CLAP(seed=1).fit(data["X"], data["y"], text=data["T"], views=data["V20"].reshape(20, 10, 64))
        found = head.decision_function(data["Xte"])
        agree(found, expected[f"{prefix}_logits_test"], dtype, FLOAT32_LOGITS["clap"])

    def test_without_penalty(self, prefix, dtype):
        data, expected = inputs("C10_K4_d64", dtype), stored("zslp_C10_K4_d64_scale10")
        head = CLAP(seed=1, penalty=False).fit(data["X"], data["y"], text=data["T"])
        found = head.decision_function(data["Xte"])
        agree(found, expected[f"{prefix}_logits_test"], dtype, FLOAT32_LOGITS["clap"])

    @pytest.mark.ci
    def test_a_hundred_classes_in_batches(self, official, prefix, dtype):
        data = inputs("C100_K16_d512", dtype, official)
        expected = stored("clap_C100_K16_d512_scale10", official)
        head = CLAP(seed=1).fit(data["X"], data["y"], text=data["T"])
        found = head.decision_function(data["Xte"])
        agree(found, expected[f"{prefix}_logits_test"], dtype, FLOAT32_LOGITS["clap"])


@pytest.mark.parametrize("epoch", [1, 2, 10])
def test_clap_on_the_way(epoch):
    data, expected = inputs("C10_K4_d64", np.float64), stored("clap_C10_K4_d64_scale10")
    found = clap_weights(data, 1, 10.0, epoch, expected["f64_penalty"])
    agree(found, expected[f"f64_W_after_epoch{epoch}"], np.float64, 0)


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_clap_with_unit_anchors_while_it_is_not_chaotic(epoch):
    data, expected = inputs("C10_K1_d64", np.float64), stored("clap_C10_K1_d64_scale1")
    found = clap_weights(data, 1, 1.0, epoch, expected["f64_penalty"])
    agree(found, expected[f"f64_W_after_epoch{epoch}"], np.float64, 0)


def test_claps_rates():
    expected = stored("clap_C10_K4_d64_scale10")["lr_per_epoch"]
    assert np.allclose(cosine_rates(300, 0.1, 1e-5), expected, rtol=1e-12)


@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
class TestLPP:
    @pytest.mark.parametrize("case", ["C10_K1_d64", "C10_K4_d64"])
    def test_head(self, case, prefix, dtype):
        data, expected = inputs(case, dtype), stored(f"lpp_{case}")
        head = LPP(bias_init=expected["bias_init"].tolist()).fit(data["X"], data["y"], text=data["T"])
        found = head.decision_function(data["Xte"])
        agree(found, expected[f"{prefix}_logits_test"], dtype, FLOAT32_LOGITS["lpp"])
        agree(head.intercept_, expected[f"{prefix}_b"], dtype, 1e-4)
        rounding = 1e-10 if dtype == np.float64 else 1e-5
        assert head.selected_["lr_w"].value == pytest.approx(expected[f"{prefix}_lr_w"], rel=rounding)
        assert head.selected_["lr_alpha"].value == pytest.approx(expected[f"{prefix}_lr_alpha"], rel=rounding)
        alpha = expected[f"{prefix}_alpha"]
        init = float(expected[f"{prefix}_alpha_init"])
        assert head.selected_["alpha"].value == pytest.approx(
            {"init": init, "min": alpha.min(), "max": alpha.max()}, rel=rounding
        )


@pytest.mark.parametrize(
    ("prefix", "dtype", "epochs"), [("f32", np.float32, 300), *(("f64", np.float64, e) for e in (1, 10, 20, 300))]
)
@pytest.mark.parametrize("bias", [True, False])
def test_lpp_on_the_way(prefix, dtype, epochs, bias):
    expected = stored("lpp_C10_K4_d64" if bias else "lpp_C10_K4_d64_nobias")
    key = "{}_{}" if epochs == 300 else "{}_{}_after_epoch" + str(epochs)
    data = inputs("C10_K4_d64", dtype)
    lr_w, lr_alpha, alpha = step_sizes(data["X"], data["y"], data["T"], 250.0)
    W, b, alpha = train_text_probe(
        data["X"],
        data["y"],
        data["T"],
        class_sums(data["X"], data["y"], 10),
        expected["bias_init"].astype(dtype) if bias else None,
        np.full(10, alpha, dtype),
        lr_w,
        lr_alpha,
        epochs=epochs,
        momentum=0.9,
        alpha_every=10,
    )
    agree(W, expected[key.format(prefix, "W")], dtype, 1e-4)
    agree(alpha, expected[key.format(prefix, "alpha")], dtype, 1e-3)
    if bias:
        agree(b, expected[key.format(prefix, "b")], dtype, 1e-4)


@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
def test_clip_adapter(prefix, dtype):
    data, expected = inputs("C10_K4_d64", dtype), stored("clipadapter_clapcfg_C10_K4_d64")
    adapter = Adapter(expected[f"{prefix}_w1_init"].copy(), expected[f"{prefix}_w2_init"].copy())
    train_adapter(
        adapter,
        data["X"],
        data["y"],
        data["T"],
        batches(1, 40, 40, 256),
        cosine_rates(300, 0.1, 1e-5),
        momentum_sgd(adapter),
        ratio=0.2,
        scale=100.0,
    )
    agree(adapter.down, expected[f"{prefix}_w1"], dtype, 1e-4)
    agree(adapter.up, expected[f"{prefix}_w2"], dtype, 1e-4)
    feature, _ = blended_feature(adapt(adapter, data["Xte"]), data["Xte"], 0.2)
    agree(100 * feature @ data["T"].T, expected[f"{prefix}_logits_test"], dtype, FLOAT32_LOGITS["adapter"])


CACHED = ["c10_k1_d64", "c10_k2_d64", "c10_k4_d64", "c10_k4_d64_aug3"]


@pytest.mark.parametrize("case", CACHED)
@pytest.mark.parametrize(("prefix", "dtype"), BOTH)
class TestTrainingFree:
    """The official runs normalised GDA's shots but took text and queries as stored: so do these kernels."""

    def test_gda(self, case, prefix, dtype):
        data = stored(f"gda_tip_{case}")
        X, y = rows_of(data, dtype)
        branch = fit_gaussian(X, y, class_means(X, y, 10))
        agree(branch.weights.T, data[f"gda_{prefix}_W"], dtype, 1e-3)
        agree(branch.bias, data[f"gda_{prefix}_b"], dtype, 1e-3)
        text, alpha = 100 * data["text"].astype(dtype), float(data[f"gda_{prefix}_alpha"])
        test, validation = data["X_test"].astype(dtype), data["X_val"].astype(dtype)
        logits = test @ (text + alpha * branch.weights).T + dtype(alpha) * branch.bias
        agree(logits, data[f"gda_{prefix}_test_logits"], dtype, FLOAT32_LOGITS["gda"])
        hits = alpha_hits(validation, data["y_val"].astype(int), text, branch, 10.0 ** np.arange(-4, 3))
        assert np.allclose(100 * hits / len(validation), data[f"gda_{prefix}_val_accs"])

    def test_gda_head(self, case, prefix, dtype):
        data = stored(f"gda_tip_{case}")
        head = GDA(alpha="val").fit(**support_of(data, dtype), validation=(data["X_val"].astype(dtype), data["y_val"]))
        assert head.selected_["alpha"].value == data[f"gda_{prefix}_alpha"]
        found = head.decision_function(data["X_test"].astype(dtype))
        assert np.abs(found - data[f"gda_{prefix}_test_logits"]).max() < FLOAT32_LOGITS["gda"]

    def test_tip_adapter(self, case, prefix, dtype):
        data = stored(f"gda_tip_{case}")
        keys = data[f"tip_{prefix}_cache_keys"].T if "aug" in case else data["X_train"].astype(dtype)
        table, filled, _ = lay_out(keys, data["y_train"].astype(int), 10)
        beta_scale, alpha_scale = map(float, json.loads(str(data["meta"]))["tip_cfg"]["search_scale"])
        betas, alphas = search_grid(beta_scale, 200), search_grid(alpha_scale, 20)
        text, validation = 100 * data["text"].astype(dtype), data["X_val"].astype(dtype)
        hits = search_hits(validation, data["y_val"].astype(int), text, table, filled, betas, alphas)
        best_beta, best_alpha = np.unravel_index(hits.argmax(), hits.shape)
        assert betas[best_beta] == pytest.approx(data[f"tip_{prefix}_best_beta"])
        assert alphas[best_alpha] == pytest.approx(data[f"tip_{prefix}_best_alpha"])
        test = data["X_test"].astype(dtype)
        cache = cache_scores(test, table, filled, float(betas[best_beta]))
        logits = test @ text.T + float(alphas[best_alpha]) * cache
        agree(logits, data[f"tip_{prefix}_test_logits"], dtype, FLOAT32_LOGITS["tip"])

    def test_tip_adapter_head(self, case, prefix, dtype):
        data = stored(f"gda_tip_{case}")
        beta_scale, alpha_scale = map(float, json.loads(str(data["meta"]))["tip_cfg"]["search_scale"])
        head = TipAdapter(tune="test", beta_scale=beta_scale, alpha_scale=alpha_scale).fit(
            **support_of(data, dtype), test=(data["X_val"].astype(dtype), data["y_val"])
        )
        assert head.selected_["beta"].value == pytest.approx(data[f"tip_{prefix}_best_beta"])
        assert head.selected_["alpha"].value == pytest.approx(data[f"tip_{prefix}_best_alpha"])
        found = head.decision_function(data["X_test"].astype(dtype))
        # Official keys average views before normalising each; ours have unit views, which shows here alone.
        tolerance = 1e-2 if "aug" in case else FLOAT32_LOGITS["tip"]
        assert np.abs(found - data[f"tip_{prefix}_test_logits"]).max() < tolerance


def rows_of(data, dtype):
    y = data["y_train"].astype(int)
    if "X_train" in data:
        return unit(data["X_train"], dtype), y
    views = unit(data["X_train_views"], dtype)
    return views.reshape(-1, 64), np.tile(y, len(views))


def support_of(data, dtype):
    views = data["X_train_views"].astype(dtype) if "X_train_views" in data else None
    X = data["X_train"].astype(dtype) if views is None else views[0]
    return {"X": X, "y": data["y_train"], "text": data["text"].astype(dtype), "views": views}
